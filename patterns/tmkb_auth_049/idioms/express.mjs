// Customers of organizations, with filters and sorting limited to the columns that the user's role may read.
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const customers = sqliteTable('customers', {
  id: integer().primaryKey(),
  name: text().notNull(),
  city: text().notNull(),
  discount: text().notNull(),
  reset_token: text().notNull(),
  organizationId: integer('organization_id').notNull(),
});

class BadRequest extends Error {
  status = 400;
}

// region idiom
const readable = new Map([['member', ['name', 'city']], ['admin', ['name', 'city', 'discount']]]);

function columnOf(user, field) {
  if (!readable.get(user.role)?.includes(field)) throw new BadRequest();
  return customers[field];
}

const ownCustomers = (user) => eq(customers.organizationId, user.organizationId);
// endregion

const startsWith = (column, value) => sql`substr(${column}, 1, ${value.length}) = ${value}`;

const writeCursor = (offset) => Buffer.from(JSON.stringify({ offset })).toString('base64url');

function readCursor(cursor) {
  try {
    const { offset } = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Number.isInteger(offset)) return Math.min(Math.abs(offset), 10_000);
  } catch {
    // refused below
  }
  throw new BadRequest();
}

export const router = Router();

router.get('/customers', requireUser, async (req, res) => {
  const params = new URL(req.url, 'http://localhost').searchParams; // of strings; req.query can have arrays
  const offset = params.has('cursor') ? readCursor(params.get('cursor')) : 0;
  const conditions = [ownCustomers(req.user)];
  const order = [asc(customers.id)];
  for (const name of new Set(params.keys())) {
    const value = params.get(name);
    if (name === 'cursor') continue;
    if (name === 'sort') {
      const direction = value.startsWith('-') ? desc : asc;
      order.unshift(direction(columnOf(req.user, value.replace(/^-/, ''))));
      continue;
    }
    const [field, operator] = name.split('__');
    const column = columnOf(req.user, field);
    conditions.push(operator === 'startswith' ? startsWith(column, value) : eq(column, value));
  }
  const page = await db.select().from(customers).where(and(...conditions)).orderBy(...order).limit(2).offset(offset);
  res.json({ names: page.map((customer) => customer.name), next: writeCursor(offset + 2) });
});

export async function event_customer({ organization_id: organizationId, ...values }) {
  await db.insert(customers).values({ ...values, organizationId });
}

export const event_nested_cursor = () => Buffer.from('['.repeat(5000)).toString('base64url');
