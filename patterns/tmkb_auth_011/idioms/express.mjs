// Invoices that only administrators void. The function that voids an invoice checks the caller itself.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import createError from 'http-errors';
import { db, requireUser } from 'tmkb/express';

export const invoices = sqliteTable('invoices', {
  id: integer().primaryKey(),
  state: text().notNull().default('open'),
  kind: text().notNull(),
  organizationId: integer('organization_id').notNull(),
});

// region idiom
export async function voidInvoice(tx, actor, id) {
  const own = and(eq(invoices.id, id), eq(invoices.organizationId, actor.organizationId));
  const [invoice] = await tx.select().from(invoices).where(own);
  if (!invoice) throw createError(404);
  if (actor.role !== 'admin') throw createError(403);
  await tx.update(invoices).set({ state: 'void' }).where(own);
}
// endregion

export const router = Router();

router.get('/invoices/:id', requireUser, async ({ user, params }, res) => {
  const mine = eq(invoices.organizationId, user.organizationId);
  const [invoice] = await db.select().from(invoices).where(and(eq(invoices.id, Number(params.id)), mine));
  if (!invoice) return res.sendStatus(404);
  const form = `<form method="post" action="/invoices/${invoice.id}/void"><button>Void</button></form>`;
  res.send(`<p>Invoice ${invoice.id} is ${invoice.state}.</p>${user.role === 'admin' ? form : ''}`);
});

router.post('/invoices/:id/void', requireUser, async ({ user, params }, res) => {
  const id = Number(params.id);
  await voidInvoice(db, user, id);
  res.redirect(`/invoices/${id}`);
});

router.post('/api/invoices/void', requireUser, async ({ user, body: { ids } }, res) => {
  if (!Array.isArray(ids) || !ids.every(Number.isInteger)) return res.sendStatus(422);
  await db.transaction(async (tx) => {
    for (const id of ids) await voidInvoice(tx, user, id);
  });
  res.sendStatus(204);
});

/** Create an invoice or a credit note, and return its id. */
export async function event_issue({ organization, kind = 'invoice' }) {
  const [{ id }] = await db.insert(invoices).values({ organizationId: organization, kind }).returning();
  return { id };
}

export async function state_invoices() {
  return (await db.select().from(invoices).orderBy(asc(invoices.id))).map((invoice) => invoice.state);
}
