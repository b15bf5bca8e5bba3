// Timesheets of organizations. One function checks membership first, and then the rule of each action.
import { asc, eq } from 'drizzle-orm';
import { integer, sqliteTable } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const timesheets = sqliteTable('timesheets', {
  id: integer().primaryKey(),
  hours: integer().notNull(),
  createdBy: integer('created_by').notNull(),
  organizationId: integer('organization_id').notNull(),
});

export const router = Router();

router.post('/timesheets', requireUser, async (req, res) => {
  const { id: createdBy, organizationId } = req.user;
  const [{ id }] = await db.insert(timesheets).values({ hours: req.body.hours, createdBy, organizationId }).returning();
  res.status(201).json({ id });
});

// region idiom
const loadTimesheet = (action) => async (req, res, next) => {
  const [sheet] = await db.select().from(timesheets).where(eq(timesheets.id, Number(req.params.id)));
  if (!sheet || sheet.organizationId !== req.user.organizationId) return res.sendStatus(404);
  const isCreator = sheet.createdBy === req.user.id;
  if (!{ edit: isCreator, delete: isCreator || req.user.role === 'admin' }[action]) return res.sendStatus(403);
  req.sheet = sheet;
  next();
};
// endregion

router.patch('/timesheets/:id', requireUser, loadTimesheet('edit'), async (req, res) => {
  await db.update(timesheets).set({ hours: req.body.hours }).where(eq(timesheets.id, req.sheet.id));
  res.sendStatus(204);
});

router.delete('/timesheets/:id', requireUser, loadTimesheet('delete'), async (req, res) => {
  await db.delete(timesheets).where(eq(timesheets.id, req.sheet.id));
  res.sendStatus(204);
});

/** Move a timesheet to another organization. */
export async function event_move_timesheet({ timesheet_id: id, organization_id: organizationId }) {
  await db.update(timesheets).set({ organizationId }).where(eq(timesheets.id, id));
}

export async function state_timesheets() {
  return (await db.select().from(timesheets).orderBy(asc(timesheets.id))).map((each) => [each.id, each.hours]);
}
