// Bids that admins delete by a timestamp. Each endpoint except restore finds only live bids.
import { and, asc, eq, isNull } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const bids = sqliteTable('bids', {
  id: integer().primaryKey(),
  price: integer().notNull(),
  text: text().notNull(),
  deletedAt: integer('deleted_at'), // Unix time
  organizationId: integer('organization_id').notNull(),
});

export const router = Router();

router.post('/bids', requireUser, async (req, res) => {
  const { organizationId } = req.user;
  if (organizationId === null) return res.sendStatus(403);
  const { price, text } = req.body;
  const [{ id }] = await db.insert(bids).values({ price, text, organizationId }).returning();
  res.status(201).json({ id });
});

// region idiom
const isLive = (user) => and(eq(bids.organizationId, user.organizationId), isNull(bids.deletedAt));
router.patch('/bids/:id', requireUser, async (req, res) => {
  const { price = bids.price, text = bids.text } = req.body;
  const where = and(isLive(req.user), eq(bids.id, Number(req.params.id)));
  const [bid] = await db.update(bids).set({ price, text }).where(where).returning();
  res.sendStatus(bid ? 204 : 404);
});
// endregion

async function findBid(user, id) {
  const [bid] = await db.select().from(bids).where(and(isLive(user), eq(bids.id, Number(id))));
  return bid;
}

router.get('/bids', requireUser, async (req, res) => {
  const live = await db.select().from(bids).where(isLive(req.user));
  res.json(live.map(({ id, text }) => ({ id, text })));
});

router.get('/bids/:id', requireUser, async (req, res) => {
  const bid = await findBid(req.user, req.params.id);
  return bid ? res.json({ price: bid.price, text: bid.text }) : res.sendStatus(404);
});

router.delete('/bids/:id', requireUser, async (req, res) => {
  const bid = await findBid(req.user, req.params.id);
  if (!bid) return res.sendStatus(404);
  if (req.user.role !== 'admin') return res.sendStatus(403);
  await db.update(bids).set({ deletedAt: Math.floor(Date.now() / 1000) }).where(eq(bids.id, bid.id));
  res.sendStatus(204);
});

router.post('/bids/:id/copies', requireUser, async (req, res) => {
  const bid = await findBid(req.user, req.params.id);
  if (!bid) return res.sendStatus(404);
  const { price, text, organizationId } = bid;
  const [{ id }] = await db.insert(bids).values({ price, text, organizationId }).returning();
  res.status(201).json({ id });
});

router.post('/bids/:id/restore', requireUser, async (req, res) => {
  const mine = eq(bids.organizationId, req.user.organizationId);
  const where = and(mine, eq(bids.id, Number(req.params.id)));
  const [bid] = await db.select().from(bids).where(where);
  if (!bid) return res.sendStatus(404);
  if (req.user.role !== 'admin') return res.sendStatus(403);
  await db.update(bids).set({ deletedAt: null }).where(eq(bids.id, bid.id));
  res.sendStatus(204);
});

export async function state_bids() {
  return (await db.select().from(bids).orderBy(asc(bids.id))).map(Object.values);
}
