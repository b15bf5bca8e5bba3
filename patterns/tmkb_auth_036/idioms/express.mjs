// Exports of deals with the rows and columns of the page, for a requester who may still see all of them.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser, users } from 'tmkb/express';

export const deals = sqliteTable('deals', {
  id: integer().primaryKey(),
  organizationId: integer('organization_id').notNull(),
  managerId: integer('manager_id').notNull(),
  customer: text().notNull(),
  amount: integer().notNull(),
  margin: integer().notNull(),
});

// Finished files, and which deals and columns they contain.
export const fileExports = sqliteTable('exports', {
  id: integer().primaryKey(),
  requesterId: integer('requester_id').notNull(),
  dealIds: text('deal_ids', { mode: 'json' }).notNull(),
  columns: text({ mode: 'json' }).notNull(),
  content: text().notNull(),
});

export const router = Router();

function visibleDeals({ id, role, organizationId }) {
  const own = eq(deals.organizationId, organizationId);
  const where = role === 'admin' ? own : and(own, eq(deals.managerId, id));
  return db.select().from(deals).where(where).orderBy(asc(deals.id));
}

const columnsFor = ({ role }) => (role === 'admin' ? ['customer', 'amount', 'margin'] : ['customer', 'amount']);

function toCsv(rows, columns) {
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))]
    .map((cells) => `${cells.map((cell) => quoted(String(cell))).join(',')}\r\n`)
    .join('');
}

router.get('/deals', requireUser, async ({ user }, res) => {
  res.json((await visibleDeals(user)).map((deal) => columnsFor(user).map((column) => deal[column])));
});

// region idiom
router.post('/exports', requireUser, async ({ user }, res) => {
  const columns = columnsFor(user); // the page of deals uses these two functions, too
  const rows = await visibleDeals(user);
  const file = { requesterId: user.id, dealIds: rows.map(({ id }) => id), columns };
  const [{ id }] = await db.insert(fileExports).values({ ...file, content: toCsv(rows, columns) }).returning();
  res.status(201).json({ id });
});
// endregion

router.get('/exports/:id', requireUser, async ({ user, params }, res) => {
  const own = and(eq(fileExports.id, Number(params.id)), eq(fileExports.requesterId, user.id));
  const [file] = await db.select().from(fileExports).where(own);
  const visible = new Set((await visibleDeals(user)).map(({ id }) => id));
  const columns = new Set(columnsFor(user));
  if (!file?.dealIds.every((id) => visible.has(id)) || !file.columns.every((name) => columns.has(name))) {
    return res.sendStatus(404);
  }
  res.type('text/csv').send(file.content);
});

/** Bob and Alice of Acme and Mallory of Globex manage one deal each. */
export async function event_deals() {
  for (const [managerId, organizationId, customer] of [[2, 1, 'Northwind'], [1, 1, 'Southgate'], [3, 2, 'Overseas']]) {
    const [amount, margin] = [100 * managerId, 7000 + managerId];
    await db.insert(deals).values({ managerId, organizationId, customer, amount, margin });
  }
}

/** Give a deal to another manager, and to the organization of this manager. */
export async function event_assign({ customer, user }) {
  const [{ id: managerId, organizationId }] = await db.select().from(users).where(eq(users.name, user));
  await db.update(deals).set({ managerId, organizationId }).where(eq(deals.customer, customer));
}

/** Try to take a deal out of its organization, which the column does not allow. */
export async function event_detach({ customer }) {
  await db.update(deals).set({ organizationId: null }).where(eq(deals.customer, customer)).catch(() => {});
}

export async function state_exports() {
  return (await db.select().from(fileExports)).map((file) => [file.requesterId, file.content]);
}
