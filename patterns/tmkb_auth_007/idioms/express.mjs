// Invoices of organizations, with the lookup limited to those of the user's organization.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const invoices = sqliteTable('invoices', {
  id: integer().primaryKey(),
  total: integer().notNull(),
  state: text().notNull().default('open'),
  createdBy: integer('created_by').notNull(),
  organizationId: integer('organization_id').notNull(),
});

export const router = Router();

router.post('/invoices', requireUser, async (req, res) => {
  const { id: createdBy, organizationId } = req.user;
  if (organizationId === null) return res.sendStatus(403);
  const [{ id }] = await db.insert(invoices).values({ total: req.body.total, createdBy, organizationId }).returning();
  res.status(201).json({ id });
});

// region idiom
async function loadInvoice(req, res, next) {
  const mine = eq(invoices.organizationId, req.user.organizationId);
  [req.invoice] = await db.select().from(invoices).where(and(eq(invoices.id, Number(req.params.id)), mine));
  return req.invoice ? next() : res.sendStatus(404);
}

router.get('/invoices/:id', requireUser, loadInvoice, (req, res) => res.json(req.invoice));
// endregion

router.post('/invoices/:id/cancel', requireUser, loadInvoice, async (req, res) => {
  await db.update(invoices).set({ state: 'cancelled' }).where(eq(invoices.id, req.invoice.id));
  res.sendStatus(204);
});

export async function state_invoices() {
  return (await db.select().from(invoices).orderBy(asc(invoices.id))).map((each) => [each.total, each.state]);
}
