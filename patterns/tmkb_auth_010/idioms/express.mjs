// Tasks with what they refer to. Every related record is looked up among those that are visible to the user.
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const projects = sqliteTable('projects', {
  id: integer().primaryKey(),
  organizationId: integer('organization_id').notNull(),
  name: text().notNull(),
  confidential: integer({ mode: 'boolean' }).notNull().default(false),
});

export const tasks = sqliteTable('tasks', {
  id: integer().primaryKey(),
  projectId: integer('project_id').notNull(),
  assigneeId: integer('assignee_id').notNull(),
  blockerId: integer('blocker_id'),
  title: text().notNull(),
});

export const budgets = sqliteTable('budgets', {
  id: integer().primaryKey(),
  projectId: integer('project_id').notNull(),
  total: integer().notNull(),
});

const isAdmin = (user) => user.role === 'admin';
const inTenant = (user) => eq(projects.organizationId, user.organizationId);
const projectsInTenant = (user) => db.select({ id: projects.id }).from(projects).where(inTenant(user));

const visibleProjects = (user) => and(inTenant(user), isAdmin(user) ? undefined : eq(projects.confidential, false));

const visibleTasks = (user) =>
  and(inArray(tasks.projectId, projectsInTenant(user)), isAdmin(user) ? undefined : eq(tasks.assigneeId, user.id));

const visibleBudgets = (user) =>
  and(inArray(budgets.projectId, projectsInTenant(user)), isAdmin(user) ? undefined : sql`false`);

// region idiom
async function projectOf(user, task, expand) {
  const where = and(visibleProjects(user), eq(projects.id, task.projectId));
  const [project] = await db.select().from(projects).where(where);
  return project ? projectJson(user, project, expand) : null;
}
// endregion

async function blockerOf(user, task, expand) {
  if (task.blockerId === null) return null;
  const [blocker] = await db.select().from(tasks).where(and(visibleTasks(user), eq(tasks.id, task.blockerId)));
  return blocker ? taskJson(user, blocker, expand) : null;
}

async function tasksOf(user, project, expand) {
  const where = and(visibleTasks(user), eq(tasks.projectId, project.id));
  const rows = await db.select().from(tasks).where(where).orderBy(asc(tasks.title));
  return Promise.all(rows.map((task) => taskJson(user, task, expand)));
}

async function budgetOf(user, project) {
  const where = and(visibleBudgets(user), eq(budgets.projectId, project.id));
  const [budget] = await db.select({ total: budgets.total }).from(budgets).where(where);
  return budget ?? null;
}

const taskJson = async (user, task, expand) => ({
  title: task.title,
  ...(await expanded(user, task, expand, new Map([['project', projectOf], ['blocker', blockerOf]]))),
});

const projectJson = async (user, project, expand) => ({
  name: project.name,
  ...(await expanded(user, project, expand, new Map([['tasks', tasksOf], ['budget', budgetOf]]))),
});

async function expanded(user, record, [name, ...rest], relations) {
  return relations.has(name) ? { [name]: await relations.get(name)(user, record, rest) } : {};
}

function readExpansion(req, res, next) {
  const [first = ''] = [req.query.expand].flat();
  req.expand = first.split('.');
  return req.expand.length > 4 ? res.sendStatus(400) : next();
}

async function loadTask(req, res, next) {
  const where = and(visibleTasks(req.user), eq(tasks.id, Number(req.params.id)));
  [req.task] = await db.select().from(tasks).where(where);
  return req.task ? next() : res.sendStatus(404);
}

export const router = Router();

router.get('/tasks/:id', requireUser, readExpansion, loadTask, async (req, res) => {
  res.json(await taskJson(req.user, req.task, req.expand));
});

router.patch('/tasks/:id', requireUser, readExpansion, loadTask, async (req, res) => {
  const { title } = req.body;
  const [task] = await db.update(tasks).set({ title }).where(eq(tasks.id, req.task.id)).returning();
  res.json(await taskJson(req.user, task, req.expand));
});

router.get('/budgets/:id', requireUser, async (req, res) => {
  const where = and(visibleBudgets(req.user), eq(budgets.id, Number(req.params.id)));
  const [budget] = await db.select({ total: budgets.total }).from(budgets).where(where);
  return budget ? res.json(budget) : res.sendStatus(404);
});

export async function event_plan() {
  const [ALICE, BOB, MALLORY] = [1, 2, 3];
  await db.insert(projects).values([
    { id: 1, organizationId: 1, name: 'Relocation to Lyon' },
    { id: 2, organizationId: 1, name: 'Acquisition of Initech', confidential: true },
    { id: 3, organizationId: 2, name: 'Globex launch' },
  ]);
  await db.insert(budgets).values([{ projectId: 1, total: 900_000 }, { projectId: 3, total: 70_007 }]);
  await db.insert(tasks).values([
    { id: 1, title: 'Book the movers', assigneeId: BOB, projectId: 1, blockerId: 4 },
    { id: 2, title: 'Choose who is let go', assigneeId: ALICE, projectId: 1 },
    { id: 3, title: 'Book a room', assigneeId: BOB, projectId: 2 },
    { id: 4, title: 'Draft the press release', assigneeId: MALLORY, projectId: 3 },
  ]);
  return { movers: 1, layoffs: 2, room: 3, press: 4, lyon: 1 };
}

/** Move a project of Acme to Globex. */
export const event_sell = ({ project }) =>
  db.update(projects).set({ organizationId: 2 }).where(eq(projects.id, project));

/** Return a path that goes down to the tasks of a project and up again. */
export const event_path = ({ levels }) => Array(levels).fill('project.tasks').join('.');

export async function state_tasks() {
  return (await db.select().from(tasks).orderBy(asc(tasks.id))).map((task) => [task.title, task.assigneeId]);
}
