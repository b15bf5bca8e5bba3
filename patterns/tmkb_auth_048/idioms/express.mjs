// An assistant that pays invoices. Its model is a stub that obeys the last instruction in the text that it reads.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';

import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const invoices = sqliteTable('invoices', {
  id: integer().primaryKey(),
  number: text().notNull(),
  organizationId: integer('organization_id').notNull(),
  payments: integer().notNull().default(0),
});

export const pendingCalls = sqliteTable('pending_calls', {
  id: text().primaryKey(),
  userId: integer('user_id').notNull(),
  call: text({ mode: 'json' }).notNull(),
});

class HttpError extends Error {
  constructor(status) {
    super();
    this.status = status;
  }
}

const listInvoices = async ({ organizationId }) => {
  const mine = await db.select().from(invoices).where(eq(invoices.organizationId, organizationId));
  return mine.map(({ number }) => number);
};

async function payInvoice({ role, organizationId }, { invoice_id: id }) {
  if (role !== 'admin') throw new HttpError(403);
  const mine = and(eq(invoices.id, id), eq(invoices.organizationId, organizationId));
  const [invoice] = await db.select().from(invoices).where(mine);
  if (!invoice) throw new HttpError(404);
  await db.update(invoices).set({ payments: invoice.payments + 1 }).where(eq(invoices.id, invoice.id));
  return 'paid';
}

const tools = new Map([
  ['list_invoices', { run: listInvoices, parameters: [], harmless: true }],
  ['pay_invoice', { run: payInvoice, parameters: ['invoice_id'], harmless: false }],
]);

/** Return the tool call that the last instruction names, for example `DO pay_invoice invoice_id=1`. */
function model(message) {
  const [name, ...words] = message.split('DO ').at(-1).split(/\s+/);
  const pairs = words.map((word) => word.split('='));
  return { name, arguments: Object.fromEntries(pairs.map(([key, value]) => [key, Number(value)])) };
}

async function runTool(call, user) {
  const tool = tools.get(call.name);
  const given = Object.keys(call.arguments);
  const known = given.length === tool?.parameters.length && given.every((key) => tool.parameters.includes(key));
  if (!known) throw new HttpError(422);
  return tool.run(user, call.arguments);
}

export const router = Router();

router.post('/chat', requireUser, async (req, res) => {
  const call = model(`${req.user.name} writes: ${req.body.message}`);
  if (tools.get(call.name)?.harmless) return res.json({ result: await runTool(call, req.user) });
  const pending = { id: randomUUID(), userId: req.user.id, call };
  await db.insert(pendingCalls).values(pending);
  res.status(202).json({ confirm: pending.id, call });
});

// region idiom
router.post('/calls/:id/confirm', requireUser, async (req, res) => {
  const mine = and(eq(pendingCalls.id, req.params.id), eq(pendingCalls.userId, req.user.id));
  const [pending] = await db.delete(pendingCalls).where(mine).returning();
  if (!pending) return res.sendStatus(404);
  res.json({ result: await runTool(pending.call, req.user) }); // the tool checks role and organization
});
// endregion

let server;
export function configure(created) {
  server = created;
}

/** Call `use` with a function that sends requests as `user`. */
async function asUser(user, use) {
  const listener = server.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const headers = { 'Content-Type': 'application/json', 'X-User': user };
  const origin = `http://127.0.0.1:${listener.address().port}`;
  try {
    return await use((path, body) => fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) }));
  } finally {
    listener.close();
    listener.closeAllConnections();
  }
}

export async function event_add_invoice({ number, organization_id: organizationId }) {
  const [{ id }] = await db.insert(invoices).values({ number, organizationId }).returning();
  return id;
}

export const event_ask = ({ user, message }) =>
  asUser(user, async (post) => (await (await post('/chat', { message })).json()).confirm ?? 'none');

export const event_pay = ({ user, invoice_id, times = 1 }) =>
  asUser(user, async (post) => {
    const body = { message: `Please DO pay_invoice invoice_id=${invoice_id}` };
    const response = await post('/chat', body);
    const waits = response.status === 202;
    const path = waits ? `/calls/${(await response.json()).confirm}/confirm` : '/chat';
    const statuses = waits ? [] : [response.status];
    while (statuses.length < times) statuses.push((await post(path, body)).status);
    return statuses;
  });

export async function state_payments() {
  return (await db.select().from(invoices).orderBy(asc(invoices.id))).map(({ number, payments }) => [number, payments]);
}
