// Projects of organizations, which a header names. The user's membership in it decides.
import { and, asc, eq } from 'drizzle-orm';
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser, users } from 'tmkb/express';

export const memberships = sqliteTable(
  'memberships',
  {
    userId: integer('user_id').notNull(),
    organizationId: integer('organization_id').notNull(),
    role: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.userId, table.organizationId] })],
);

export const projects = sqliteTable('projects', {
  id: integer().primaryKey(),
  name: text().notNull(),
  organizationId: integer('organization_id').notNull(),
});

// region idiom
async function loadMembership(req, res, next) {
  const org = req.get('X-Org-Id') ?? String(req.user.organizationId);
  if (!/^[0-9]{1,9}$/.test(org)) return res.sendStatus(400);
  const mine = and(eq(memberships.userId, req.user.id), eq(memberships.organizationId, Number(org)));
  [req.membership] = await db.select().from(memberships).where(mine);
  return req.membership ? next() : res.sendStatus(404);
}
// endregion

export const router = Router();

router.get('/projects', requireUser, loadMembership, async (req, res) => {
  const mine = eq(projects.organizationId, req.membership.organizationId);
  const found = await db.select().from(projects).where(mine).orderBy(asc(projects.id));
  res.json(found.map(({ name }) => name));
});

router.delete('/projects/:id', requireUser, loadMembership, async (req, res) => {
  const { role, organizationId } = req.membership;
  if (role !== 'admin') return res.sendStatus(403);
  const mine = and(eq(projects.id, Number(req.params.id)), eq(projects.organizationId, organizationId));
  const deleted = await db.delete(projects).where(mine).returning();
  res.sendStatus(deleted.length ? 204 : 404);
});

async function userIdOf(name) {
  const [{ id }] = await db.select().from(users).where(eq(users.name, name));
  return id;
}

export async function event_grant({ user, organization_id: organizationId, role }) {
  const values = { userId: await userIdOf(user), organizationId, role };
  const target = [memberships.userId, memberships.organizationId];
  await db.insert(memberships).values(values).onConflictDoUpdate({ target, set: { role } });
}

export async function event_revoke({ user, organization_id }) {
  const theirs = eq(memberships.userId, await userIdOf(user));
  await db.delete(memberships).where(and(theirs, eq(memberships.organizationId, organization_id)));
}

export async function event_add_project({ name, organization_id: organizationId }) {
  const [{ id }] = await db.insert(projects).values({ name, organizationId }).returning();
  return id;
}

export async function state_projects() {
  return (await db.select().from(projects).orderBy(asc(projects.id))).map(({ name }) => name);
}
