// The management area of organizations. One table gives each operation its permission.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, users } from 'tmkb/express';

export const memberships = sqliteTable('memberships', {
  id: integer().primaryKey(),
  userId: integer('user_id').notNull(),
  organizationId: integer('organization_id').notNull(),
  active: integer({ mode: 'boolean' }).notNull().default(true),
});

export const auditEntries = sqliteTable('audit_entries', {
  id: integer().primaryKey(),
  text: text().notNull(),
  organizationId: integer('organization_id').notNull(),
});

const permissions = new Map([
  ['admin', new Set(['users.disable', 'audit.read', 'audit.clear'])],
  ['auditor', new Set(['audit.read'])],
  ['member', new Set()],
]);

export const router = Router();

router.use(async (req, res, next) => {
  if (!req.user) return next();
  const disabled = and(membershipOf(req.user, req.user.id), eq(memberships.active, false));
  return (await db.$count(memberships, disabled)) ? res.sendStatus(401) : next();
});

const operations = [
  ['post', '/admin/users/:id/disable', disableUser, 'users.disable'],
  ['get', '/admin/audit', showAudit, 'audit.read'],
  ['delete', '/admin/audit', clearAudit, 'audit.clear'],
  ['post', '/admin/purge', purge],
  ['post', '/admin/reset', reset],
  ['options', '/admin/reset', reset],
];

// region idiom
const needs = (permission) => (req, res, next) => {
  if (permission && !req.user) return res.sendStatus(401);
  return permission && permissions.get(req.user.role)?.has(permission) ? next() : res.sendStatus(403);
};
// rows such as ['get', '/admin/audit', showAudit, 'audit.read']
for (const [method, path, handler, permission] of operations) {
  router[method](path, needs(permission), handler);
}
// endregion

function membershipOf(user, userId) {
  return and(eq(memberships.organizationId, user.organizationId), eq(memberships.userId, userId));
}

async function disableUser(req, res) {
  const { organizationId } = req.user;
  const mine = membershipOf(req.user, Number(req.params.id));
  const [membership] = await db.update(memberships).set({ active: false }).where(mine).returning();
  if (!membership) return res.sendStatus(404);
  await db.insert(auditEntries).values({ text: `${membership.userId} disabled`, organizationId });
  res.sendStatus(204);
}

async function showAudit(req, res) {
  const mine = eq(auditEntries.organizationId, req.user.organizationId);
  res.json((await db.select().from(auditEntries).where(mine)).map((entry) => entry.text));
}

async function clearAudit(req, res) {
  await db.delete(auditEntries).where(eq(auditEntries.organizationId, req.user.organizationId));
  res.sendStatus(204);
}

// Delete the log of all organizations. A maintenance route that was added later, for one use.
async function purge(req, res) {
  await db.delete(auditEntries);
  res.sendStatus(204);
}

// Enable all accounts. It answers OPTIONS itself, for a frontend on another origin.
async function reset(req, res) {
  await db.update(memberships).set({ active: true });
  res.sendStatus(204);
}

export async function event_start() {
  for (const { id, organizationId } of await db.select().from(users)) {
    await db.insert(memberships).values({ userId: id, organizationId });
  }
  await db.insert(memberships).values({ userId: 99, organizationId: 1, active: false });
  await db.insert(auditEntries).values({ text: 'Alice read the payroll', organizationId: 1 });
}

export async function event_disable({ user_id: userId }) {
  await db.update(memberships).set({ active: false }).where(eq(memberships.userId, userId));
}

export async function state_accounts() {
  return (await db.select().from(memberships).orderBy(asc(memberships.id))).map((each) => [each.userId, each.active]);
}

export async function state_log() {
  return (await db.select().from(auditEntries).orderBy(asc(auditEntries.id))).map((entry) => entry.text);
}
