// Tasks of projects. Each id in the body is looked up among the rows that the caller may use for that purpose.
import { and, asc, eq } from 'drizzle-orm';
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import createError from 'http-errors';
import { db, requireUser, users } from 'tmkb/express';

export const projects = sqliteTable('projects', {
  id: integer().primaryKey(),
  name: text().notNull(),
  managerId: integer('manager_id').notNull(),
  organizationId: integer('organization_id').notNull(),
});

export const tasks = sqliteTable('tasks', {
  id: integer().primaryKey(),
  title: text().notNull(),
  projectId: integer('project_id').notNull(),
  assigneeId: integer('assignee_id').notNull(),
});

export const taskWatchers = sqliteTable(
  'task_watchers',
  { taskId: integer('task_id').notNull(), userId: integer('user_id').notNull() },
  (table) => [primaryKey({ columns: [table.taskId, table.userId] })],
);

async function oneOr404(query) {
  const [row] = await query;
  if (!row) throw createError(404);
  return row;
}

// region idiom
function projectToPlan(user, id) {
  const own = and(eq(projects.organizationId, user.organizationId), eq(projects.managerId, user.id));
  return oneOr404(db.select().from(projects).where(and(own, eq(projects.id, id))));
}
function colleague(user, id) {
  const ours = eq(users.organizationId, user.organizationId);
  return oneOr404(db.select().from(users).where(and(ours, eq(users.id, id))));
}
// endregion

function requireIds({ body }, res, next) {
  const ids = Object.entries(body).filter(([key]) => key.endsWith('_id')).map(([, value]) => value);
  return [...ids, ...(body.watcher_ids ?? [])].every(Number.isInteger) ? next() : res.sendStatus(422);
}

async function shown({ id, projectId, assigneeId }) {
  const [project] = await db.select().from(projects).where(eq(projects.id, projectId));
  const [assignee] = await db.select().from(users).where(eq(users.id, assigneeId));
  const watchers = await db
    .select({ name: users.name })
    .from(taskWatchers)
    .innerJoin(users, eq(users.id, taskWatchers.userId))
    .where(eq(taskWatchers.taskId, id))
    .orderBy(asc(users.id));
  return { id, project: project.name, assignee: assignee.name, watchers: watchers.map((user) => user.name) };
}

export const router = Router();

router.get('/projects', requireUser, async ({ user }, res) => {
  const rows = await db.select().from(projects).where(eq(projects.organizationId, user.organizationId));
  res.json(Object.fromEntries(rows.map(({ name, id }) => [name, id])));
});

router.post('/tasks', requireUser, requireIds, async ({ user, body }, res) => {
  const project = await projectToPlan(user, body.project_id);
  const assignee = await colleague(user, body.assignee_id);
  const watchers = await Promise.all([...new Set(body.watcher_ids)].map((id) => colleague(user, id)));
  const task = await db.transaction(async (tx) => {
    const values = { title: body.title, projectId: project.id, assigneeId: assignee.id };
    const [task] = await tx.insert(tasks).values(values).returning();
    for (const { id: userId } of watchers) await tx.insert(taskWatchers).values({ taskId: task.id, userId });
    return task;
  });
  res.status(201).json(await shown(task));
});

router.patch('/tasks/:id', requireUser, requireIds, async ({ user, params, body }, res) => {
  const { id, projectId } = await oneOr404(db.select().from(tasks).where(eq(tasks.id, Number(params.id))));
  await projectToPlan(user, projectId);
  const project = await projectToPlan(user, body.project_id);
  const [moved] = await db.update(tasks).set({ projectId: project.id }).where(eq(tasks.id, id)).returning();
  res.json(await shown(moved));
});

/** Create a project and return its id. */
export async function event_open({ name, manager: managerId, organization: organizationId }) {
  const [{ id }] = await db.insert(projects).values({ name, managerId, organizationId }).returning();
  return { id };
}

/** Make somebody else the manager of a project. */
export const event_hand_over = ({ project, manager }) =>
  db.update(projects).set({ managerId: manager }).where(eq(projects.id, project));

/** Move a project to Globex; its manager stays. */
export const event_sell = ({ project }) =>
  db.update(projects).set({ organizationId: 2 }).where(eq(projects.id, project));

export async function state_tasks() {
  const rows = await db.select().from(tasks).orderBy(asc(tasks.id));
  return Promise.all(rows.map(async (task) => [task.title, ...Object.values(await shown(task))]));
}
