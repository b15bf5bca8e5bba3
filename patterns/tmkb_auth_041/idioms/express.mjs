// Invoices of organizations behind a GraphQL API, whose resolvers share one loader. Admins read and flag them.
import { and, asc, eq, sql } from 'drizzle-orm';
import { integer, sqliteTable } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { GraphQLError, buildSchema, graphql } from 'graphql';
import { db, organizations, requireUser } from 'tmkb/express';

export const invoices = sqliteTable('invoices', {
  id: integer().primaryKey(),
  organizationId: integer('organization_id').notNull(),
  total: integer().notNull(),
  flagged: integer({ mode: 'boolean' }).notNull().default(false),
});

const readableBy = ({ role, organizationId }) =>
  role === 'admin' ? eq(invoices.organizationId, organizationId) : sql`false`;

// region idiom
async function loadInvoice({ user, db }, id) {
  const key = /^[0-9]{1,9}$/.test(id) ? Number(id) : 0; // no invoice has 0
  const readable = and(eq(invoices.id, key), readableBy(user));
  const [invoice] = await db.select().from(invoices).where(readable);
  if (!invoice) throw new GraphQLError('no such invoice');
  return invoice;
}
const node = (_, { id }, context) => loadInvoice(context, id); // a mutation: editableBy(user)
// endregion

function invoicesOf({ user, db }, organizationId) {
  if (user.role !== 'admin' || user.organizationId !== organizationId) throw new GraphQLError('no such invoice');
  return db.select().from(invoices).where(readableBy(user));
}

async function flag(_, { id }, context) {
  const invoice = await loadInvoice(context, id);
  await context.db.update(invoices).set({ flagged: true }).where(eq(invoices.id, invoice.id));
  return { ok: true, invoice };
}

async function organization({ organizationId }, _, { db }) {
  const [found] = await db.select().from(organizations).where(eq(organizations.id, organizationId));
  return found;
}

const resolvers = {
  Query: {
    me: (_, __, { user }) => user,
    invoices: (_, __, context) => invoicesOf(context, context.user.organizationId),
    node,
  },
  User: { organization },
  Organization: { invoices: ({ id }, _, context) => invoicesOf(context, id) },
  Mutation: { flag },
};

const schema = buildSchema(`
  type Invoice { id: ID! total: Int! }
  type Organization { name: String! invoices: [Invoice!] }
  type User { name: String! organization: Organization! }
  type Flagged { ok: Boolean! invoice: Invoice }
  type Query { me: User! invoices: [Invoice!] node(id: ID!): Invoice }
  type Mutation { flag(id: ID!): Flagged }
`);
for (const [type, fields] of Object.entries(resolvers)) {
  for (const [name, resolve] of Object.entries(fields)) schema.getType(type).getFields()[name].resolve = resolve;
}

/** Return an error for the client. Messages of the database contain SQL. */
function shown(error) {
  const known = !error.originalError || error.originalError instanceof GraphQLError;
  return known ? error : new GraphQLError('internal error', { path: error.path });
}

export const router = Router();

router.post('/graphql', requireUser, async (req, res) => {
  const contextValue = { user: req.user, db };
  const { query: source, variables: variableValues } = req.body;
  const { data, errors } = await graphql({ schema, source, contextValue, variableValues });
  res.json({ data, errors: errors?.map(shown) });
});

export const event_invoices = () =>
  db.insert(invoices).values([
    { id: 1, organizationId: 1, total: 7341 },
    { id: 2, organizationId: 2, total: 9982 },
  ]);

export const event_move_invoice = ({ invoice_id: id, organization_id: organizationId }) =>
  db.update(invoices).set({ organizationId }).where(eq(invoices.id, id));

export async function state_flags() {
  return (await db.select().from(invoices).orderBy(asc(invoices.id))).map(({ id, flagged }) => [id, flagged]);
}
