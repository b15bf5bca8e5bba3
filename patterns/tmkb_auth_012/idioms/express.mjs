// Tickets, which only their authors delete, one or many.
import { and, asc, eq, inArray } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const tickets = sqliteTable('tickets', {
  id: integer().primaryKey(),
  subject: text().notNull(),
  authorId: integer('author_id').notNull(),
  organizationId: integer('organization_id').notNull(),
});

class NotFound extends Error {
  status = 404;
}

// region idiom
async function deleteTickets({ id: authorId, organizationId }, ids) {
  const mine = and(eq(tickets.authorId, authorId), eq(tickets.organizationId, organizationId));
  await db.transaction(async (tx) => {
    const deleted = await tx.delete(tickets).where(and(mine, inArray(tickets.id, ids))).returning();
    if (deleted.length !== new Set(ids).size) throw new NotFound(); // undoes all deletions
  });
}
// endregion

export const router = Router();

router.post('/tickets', requireUser, async (req, res) => {
  const { id: authorId, organizationId } = req.user;
  if (organizationId === null) return res.sendStatus(403);
  const [{ id }] = await db
    .insert(tickets)
    .values({ subject: req.body.subject, authorId, organizationId })
    .returning();
  res.status(201).json({ id });
});

router.post('/tickets/delete', requireUser, async (req, res) => {
  if (!Array.isArray(req.body?.ids)) return res.sendStatus(400);
  await deleteTickets(req.user, req.body.ids.map(Number));
  res.sendStatus(204);
});

router.delete('/tickets/:id', requireUser, async (req, res) => {
  await deleteTickets(req.user, [Number(req.params.id)]);
  res.sendStatus(204);
});

export const event_move = ({ ticket, organization: organizationId }) =>
  db.update(tickets).set({ organizationId }).where(eq(tickets.id, ticket));

export const event_hand_over = ({ ticket, author: authorId }) =>
  db.update(tickets).set({ authorId }).where(eq(tickets.id, ticket));

export async function state_tickets() {
  return (await db.select().from(tickets).orderBy(asc(tickets.id))).map(({ subject }) => subject);
}
