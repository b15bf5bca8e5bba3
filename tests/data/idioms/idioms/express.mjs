// An application that uses what the stage offers.
import { sum } from 'drizzle-orm';
import { integer, sqliteTable } from 'drizzle-orm/sqlite-core';
import { Router, text } from 'express';
import multer from 'multer';
import { config, db, enqueue, requireUser } from 'tmkb/express';

export const entries = sqliteTable('entries', {
  id: integer().primaryKey(),
  amount: integer().notNull(),
});

export const router = Router();
let started;

async function total() {
  const [row] = await db.select({ total: sum(entries.amount) }).from(entries);
  return Number(row.total);
}

// region idiom
router.get('/me', requireUser, async (req, res) => {
  const cookie = req.get('Cookie')?.replace('flavor=', '') ?? null;
  res.json({ role: req.user.role, organization: req.user.organizationId, cookie, total: await total() });
});
// endregion

router.get('/cookie', (req, res) => res.cookie('flavor', 'sweet').sendStatus(200));
router.post('/form', (req, res) => res.send(req.body.text));
router.post('/file', multer().single('file'), (req, res) => res.send(req.file.buffer.toString()));
router.post('/text', text({ type: () => true }), (req, res) => res.send(req.body));

router.post('/json', requireUser, async (req, res) => {
  await db.transaction(async (tx) => {
    await tx.insert(entries).values({ amount: req.body.amount });
  });
  res.sendStatus(204);
});

router.post('/start', (req, res) => {
  started = Date.now();
  res.sendStatus(200);
});

router.get('/late', (req, res) => res.json({ late: Date.now() - started > 59 * 60 * 1000 }));
router.get('/greeting', (req, res) => res.send(`${config.GREETING} ${req.get('X-Name')}`));

router.post('/job', (req, res) => {
  enqueue(async (amount) => {
    if (typeof amount !== 'number') throw new TypeError('no number');
    await event_add({ amount });
  }, req.body.amount);
  res.sendStatus(200);
});

router.get('/crash', () => {
  throw new RangeError('nothing here');
});

export async function event_add({ amount }) {
  await db.insert(entries).values({ amount });
  return total();
}

export const state_total = total;
