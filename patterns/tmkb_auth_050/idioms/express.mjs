// Attachments of projects, whose new columns a migration fills from what the rows belong to.
import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const projects = sqliteTable('projects', {
  id: integer().primaryKey(),
  organizationId: integer('organization_id').notNull(),
});

export const attachments = sqliteTable('attachments', {
  name: text().primaryKey(),
  uploaderId: integer('uploader_id').notNull(),
  projectId: integer('project_id'),
  organizationId: integer('organization_id'), // new
});

export const members = sqliteTable('members', {
  userId: integer('user_id').primaryKey(),
  role: text().notNull(),
  mayExport: integer('may_export', { mode: 'boolean' }), // new
});

// region idiom
async function fill(tx) { // called in db.transaction
  const project = sql`(select organization_id from projects where id = ${attachments.projectId})`;
  const empty = isNull(attachments.organizationId);
  await tx.update(attachments).set({ organizationId: project }).where(empty);
  if (await tx.$count(attachments, empty)) throw new Error('orphans');
}
// endregion

async function fillMembers(tx) {
  const mayExport = sql`${members.role} = 'admin'`;
  await tx.update(members).set({ mayExport }).where(isNull(members.mayExport));
}

async function loadNames(req, res, next) {
  const { organizationId } = req.user;
  if (organizationId === null) return res.sendStatus(403);
  const mine = eq(attachments.organizationId, organizationId);
  const found = await db.select().from(attachments).where(mine).orderBy(asc(attachments.name));
  req.names = found.map(({ name }) => name);
  next();
}

export const router = Router();

router.get('/attachments', requireUser, loadNames, (req, res) => res.json(req.names));

router.get('/attachments/export', requireUser, loadNames, async (req, res) => {
  const permitted = and(eq(members.userId, req.user.id), eq(members.mayExport, true));
  if (!(await db.$count(members, permitted))) return res.sendStatus(403);
  res.type('text/plain').send(req.names.join('\n'));
});

export async function event_upgrade() {
  try {
    await db.transaction(async (tx) => {
      await fill(tx);
      await fillMembers(tx);
    });
  } catch (error) {
    if (error.message !== 'orphans') throw error;
    return { stopped: 'ValueError' }; // its name in the attacks
  }
  return { stopped: null };
}

export const event_project = ({ id, organization: organizationId }) =>
  db.insert(projects).values({ id, organizationId });

export const event_attachment = ({ name, uploader, project, organization = null }) =>
  db.insert(attachments).values({ name, uploaderId: uploader, projectId: project, organizationId: organization });

export const event_transferred = ({ name, organization: organizationId }) =>
  db.update(attachments).set({ organizationId }).where(eq(attachments.name, name));

export const event_member = ({ user: userId, role }) => db.insert(members).values({ userId, role });

export const event_export_withdrawn = ({ user }) =>
  db.update(members).set({ mayExport: false }).where(eq(members.userId, user));

export async function state_attachments() {
  const all = await db.select().from(attachments).orderBy(asc(attachments.name));
  return all.map(({ name, organizationId }) => [name, organizationId]);
}

export async function state_members() {
  const all = await db.select().from(members).orderBy(asc(members.userId));
  return all.map(({ userId, mayExport }) => [userId, mayExport]);
}
