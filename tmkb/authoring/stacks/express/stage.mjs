// A small multi-tenant Express application around an idiom, with Drizzle on SQLite. Applications import it as
// 'tmkb/express'. They export `router` and their tables. They can export functions `event_NAME(values)` and
// `state_NAME()`, and `configure(server)`, which adds middleware before the router.
import { eq } from 'drizzle-orm';
import { SQLiteSyncDialect, SQLiteTable, getTableConfig, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { drizzle } from 'drizzle-orm/sqlite-proxy';
import express from 'express';
import initSqlJs from 'sql.js';

export const organizations = sqliteTable('organizations', {
  id: integer().primaryKey(),
  name: text().notNull(),
});

export const users = sqliteTable('users', {
  id: integer().primaryKey(),
  name: text().notNull().unique(),
  role: text().notNull().default('member'),
  organizationId: integer('organization_id').references(() => organizations.id),
});

export const documents = sqliteTable('documents', {
  id: integer().primaryKey(),
  title: text().notNull(),
  state: text().notNull().default('new'),
  ownerId: integer('owner_id').notNull().references(() => users.id),
  organizationId: integer('organization_id').notNull().references(() => organizations.id),
});

export const config = {}; // `config` of attacks.yaml
export let db; // the database of the current case

/** Middleware that answers 401 to anonymous requests. */
export function requireUser(req, res, next) {
  if (!req.user) return res.sendStatus(401);
  next();
}

const jobs = [];

/** Queue a call of `job` for a worker, which receives the arguments as JSON, as from a broker. */
export function enqueue(job, ...args) {
  jobs.push([job, JSON.stringify(args)]);
}

/** Run all queued jobs, one after the other, outside of requests. */
export async function work() {
  const results = [];
  const raised = [];
  while (jobs.length) {
    const [job, args] = jobs.shift();
    try {
      results.push(JSON.stringify(await job(...JSON.parse(args))) ?? 'undefined');
    } catch (error) {
      results.push(String(error));
      raised.push(error.name);
    }
  }
  return { text: results.join(' '), raised };
}

/** Begin a case: create the database with the initial rows, and return a server of `application`, a module. */
export async function begin(application, settings) {
  Object.assign(config, settings);
  jobs.length = crashes.length = 0;
  const tables = { organizations, users, documents };
  for (const [name, value] of Object.entries(application)) if (value instanceof SQLiteTable) tables[name] = value;
  const relations = Object.entries(application).filter(([, value]) => value?.constructor?.name === 'Relations');
  const schema = { ...tables, ...Object.fromEntries(relations) };
  const data = await database(Object.values(tables).map(ddl));
  db = drizzle(async (sql, params, method) => run(data, sql, params, method), { schema });
  const server = express();
  server.use(express.json(), express.urlencoded(), authenticate);
  application.configure?.(server);
  server.use(application.router, (req, res, next) => refuseMethod(application.router, req, res, next));
  server.use(noteCrash);
  return server;
}

const SQL = initSqlJs();
const images = new Map(); // of databases with the initial rows, by the statements that create their tables

/** Return a new database with the tables that `statements` create, and the initial rows. */
async function database(statements) {
  const { Database } = await SQL;
  const key = statements.join(';');
  if (!images.has(key)) {
    const data = new Database();
    for (const each of statements) data.run(each);
    const rows = drizzle(async (sql, params, method) => run(data, sql, params, method));
    await rows.insert(organizations).values([{ id: 1, name: 'Acme' }, { id: 2, name: 'Globex' }]);
    await rows.insert(users).values([
      { id: 1, name: 'alice', role: 'admin', organizationId: 1 },
      { id: 2, name: 'bob', role: 'member', organizationId: 1 },
      { id: 3, name: 'mallory', role: 'admin', organizationId: 2 },
    ]);
    await rows.insert(documents).values([
      { id: 1, title: 'Acme payroll', ownerId: 1, organizationId: 1 },
      { id: 2, title: 'Globex plan', ownerId: 3, organizationId: 2 },
    ]);
    images.set(key, data.export());
    data.close();
  }
  return new Database(images.get(key));
}

function run(data, sql, params, method) {
  const statement = data.prepare(sql);
  try {
    statement.bind(params.map((value) => (typeof value === 'boolean' ? Number(value) : value)));
    const rows = [];
    while (statement.step()) rows.push(statement.get());
    return { rows: method === 'get' ? rows[0] : rows, rowsAffected: data.getRowsModified() };
  } finally {
    statement.free();
  }
}

function ddl(table) {
  const { name, columns, primaryKeys, uniqueConstraints } = getTableConfig(table);
  const parts = columns.map((column) => {
    const words = [`"${column.name}" ${column.getSQLType()}`];
    if (column.primary) words.push(column.autoIncrement ? 'primary key autoincrement' : 'primary key');
    if (column.notNull) words.push('not null');
    if (column.isUnique) words.push('unique');
    if (column.default !== undefined) words.push(`default (${literal(column)})`);
    return words.join(' ');
  });
  for (const each of primaryKeys) parts.push(`primary key (${each.columns.map((c) => `"${c.name}"`)})`);
  for (const each of uniqueConstraints) parts.push(`unique (${each.columns.map((c) => `"${c.name}"`)})`);
  return `create table "${name}" (${parts.join(', ')})`;
}

function literal(column) {
  const value = column.default;
  if (typeof value === 'object' && value?.queryChunks) return new SQLiteSyncDialect().sqlToQuery(value).sql;
  const mapped = column.mapToDriverValue(value);
  return typeof mapped === 'string' ? `'${mapped.replaceAll("'", "''")}'` : String(mapped === true ? 1 : mapped || 0);
}

async function authenticate(req, res, next) {
  const name = req.get('X-User');
  if (name) [req.user] = await db.select().from(users).where(eq(users.name, name));
  next();
}

export const crashes = []; // the errors behind responses with status 500

function noteCrash(error, req, res, next) {
  if (!(error.status < 500)) crashes.push(String(error.stack).split('\n').slice(0, 2).join(''));
  next(error);
}

// As Flask and Django do: 405 if the path has a handler for another method.
function refuseMethod(router, req, res, next) {
  const known = router.stack.some((layer) => layer.route && layer.match(req.path));
  return known ? res.sendStatus(405) : next();
}

const account = (user) => eq(users.name, user);

// Events of every application; an application exports others as functions `event_NAME`.
export const events = {
  leave: ({ user }) => db.update(users).set({ organizationId: null }).where(account(user)),
  async join({ user, organization, role = 'member' }) {
    const [{ id }] = await db.select().from(organizations).where(eq(organizations.name, organization));
    await db.update(users).set({ organizationId: id, role }).where(account(user));
  },
  set_role: ({ user, role }) => db.update(users).set({ role }).where(account(user)),
  delete_user: ({ user }) => db.delete(users).where(account(user)),
};
