// Notes on customers, whose list and page use the same condition.
import { and, eq, or } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const notes = sqliteTable('notes', {
  id: integer().primaryKey(),
  customer: text().notNull(),
  text: text().notNull(),
  private: integer({ mode: 'boolean' }).notNull(),
  deleted: integer({ mode: 'boolean' }).notNull().default(false),
  authorId: integer('author_id').notNull(),
  organizationId: integer('organization_id').notNull(),
});

export const router = Router();

router.post('/notes', requireUser, async (req, res) => {
  const { id: authorId, organizationId } = req.user;
  if (organizationId === null) return res.sendStatus(403);
  const { customer, text, private: hidden } = req.body;
  const values = { customer, text, private: hidden, authorId, organizationId };
  const [{ id }] = await db.insert(notes).values(values).returning();
  res.status(201).json({ id });
});

// region idiom
const visibleNotes = ({ id, organizationId }) => {
  const allowed = or(eq(notes.private, false), eq(notes.authorId, id));
  return and(eq(notes.organizationId, organizationId), eq(notes.deleted, false), allowed);
};
router.get('/notes', requireUser, async ({ user }, res) => {
  const { id, customer, text } = notes;
  res.json(await db.select({ id, customer, text }).from(notes).where(visibleNotes(user)));
});
// endregion

router.get('/notes/:id', requireUser, async ({ user, params }, res) => {
  const where = and(visibleNotes(user), eq(notes.id, Number(params.id)));
  const [note] = await db.select().from(notes).where(where);
  return note ? res.json({ customer: note.customer, text: note.text }) : res.sendStatus(404);
});

const ownNote = ({ user, params }) =>
  and(visibleNotes(user), eq(notes.authorId, user.id), eq(notes.id, Number(params.id)));

async function setOwnNote(req, res, values) {
  const changed = await db.update(notes).set(values).where(ownNote(req)).returning();
  res.sendStatus(changed.length ? 204 : 404);
}

router.put('/notes/:id/private', requireUser, (req, res) => setOwnNote(req, res, { private: true }));
router.delete('/notes/:id', requireUser, (req, res) => setOwnNote(req, res, { deleted: true }));
