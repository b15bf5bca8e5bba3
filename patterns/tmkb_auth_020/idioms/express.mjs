// Projects of organizations. Other tenants' projects get the response of absent ones; names are unique in a tenant.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import createError from 'http-errors';
import { db, requireUser } from 'tmkb/express';

const columns = {
  id: integer().primaryKey(),
  slug: text().notNull(),
  organizationId: integer('organization_id').notNull(),
};

// region idiom
export const projects = sqliteTable('projects', columns, (t) => [unique().on(t.organizationId, t.slug)]);
async function loadProject(user, id) { // also for ids in the body
  const own = eq(projects.organizationId, user.organizationId);
  const [project] = await db.select().from(projects).where(and(own, eq(projects.id, Number(id))));
  if (!project) throw createError(404, 'No such project.');
  return project;
}
// endregion

export const router = Router();

router.get('/projects/free', requireUser, async (req, res) => {
  const own = eq(projects.organizationId, req.user.organizationId);
  res.json({ free: !(await db.$count(projects, and(own, eq(projects.slug, String(req.query.slug))))) });
});

router.get('/projects/:id', requireUser, async (req, res) => {
  const { slug } = await loadProject(req.user, req.params.id);
  res.json({ slug });
});

router.delete('/projects/:id', requireUser, async (req, res) => {
  const { id } = await loadProject(req.user, req.params.id);
  if (req.user.role !== 'admin') throw createError(403, 'Only administrators delete projects.');
  await db.delete(projects).where(eq(projects.id, id));
  res.sendStatus(204);
});

router.post('/projects', requireUser, async (req, res) => {
  const { slug, copy_of: source } = req.body;
  const { organizationId } = req.user;
  if (typeof slug !== 'string' || organizationId === null) {
    throw createError(422, 'A project needs a name and an organization.');
  }
  if (source !== undefined) await loadProject(req.user, source);
  const [project] = await db.insert(projects).values({ slug, organizationId }).onConflictDoNothing().returning();
  if (!project) throw createError(409, 'This name is taken.');
  res.status(201).json({ slug });
});

router.use((error, req, res, next) => {
  if (!error.expose) return next(error);
  res.status(error.status).json({ error: error.message });
});

export async function event_begin({ slug, organization_id: organizationId }) {
  await db.insert(projects).values({ slug, organizationId });
}

export async function state_projects() {
  return (await db.select().from(projects).orderBy(asc(projects.id))).map((each) => [each.slug, each.organizationId]);
}
