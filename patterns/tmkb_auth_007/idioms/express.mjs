// Invoices of organizations: admins reach all of their organization, other members those that they handle.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const invoices = sqliteTable('invoices', {
  id: integer().primaryKey(),
  total: integer().notNull(),
  state: text().notNull().default('open'),
  createdBy: integer('created_by').notNull(),
  handlerId: integer('handler_id').notNull(),
  organizationId: integer('organization_id').notNull(),
});

export const router = Router();

router.post('/invoices', requireUser, async (req, res) => {
  const { id: createdBy, organizationId } = req.user;
  if (organizationId === null) return res.sendStatus(403);
  const values = { total: req.body.total, createdBy, handlerId: createdBy, organizationId };
  const [{ id }] = await db.insert(invoices).values(values).returning();
  res.status(201).json({ id });
});

// region idiom
const visibleTo = (user) => and(
  eq(invoices.organizationId, user.organizationId),
  user.role === 'admin' ? undefined : eq(invoices.handlerId, user.id),
);

router.get('/invoices/:id', requireUser, async ({ user, params }, res) => {
  const [invoice] = await db.select().from(invoices).where(and(visibleTo(user), eq(invoices.id, Number(params.id))));
  invoice ? res.json({ total: invoice.total, state: invoice.state }) : res.sendStatus(404);
});
// endregion

router.post('/invoices/:id/cancel', requireUser, async ({ user, params }, res) => {
  const where = and(visibleTo(user), eq(invoices.id, Number(params.id)));
  const cancelled = await db.update(invoices).set({ state: 'cancelled' }).where(where).returning({ id: invoices.id });
  res.sendStatus(cancelled.length ? 204 : 404);
});

export async function event_assign({ invoice, handler }) {
  await db.update(invoices).set({ handlerId: handler }).where(eq(invoices.id, Number(invoice)));
}

export async function state_invoices() {
  return (await db.select().from(invoices).orderBy(asc(invoices.id))).map((each) => [each.total, each.state]);
}
