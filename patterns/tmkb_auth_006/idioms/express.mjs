// Profiles, roles and documents, each written from the fields that its endpoint picks from the body.
import { and, asc, eq } from 'drizzle-orm';
import { Router } from 'express';
import { db, documents, requireUser, users } from 'tmkb/express';

export const router = Router();

function requireJson(req, res, next) {
  return req.is('application/json') ? next() : res.sendStatus(415);
}

router.use(requireJson);

router.patch('/me', requireUser, async (req, res) => {
  const { name } = req.body;
  if (typeof name !== 'string') return res.sendStatus(422);
  await db.update(users).set({ name }).where(eq(users.id, req.user.id));
  res.sendStatus(204);
});

router.patch('/members/:id', requireUser, async (req, res) => {
  const colleague = eq(users.organizationId, req.user.organizationId);
  const [member] = await db.select().from(users).where(and(eq(users.id, Number(req.params.id)), colleague));
  if (!member) return res.sendStatus(404);
  if (req.user.role !== 'admin') return res.sendStatus(403);
  const { role } = req.body;
  if (typeof role !== 'string') return res.sendStatus(422);
  await db.update(users).set({ role }).where(eq(users.id, member.id));
  res.sendStatus(204);
});

// region idiom
router.post('/documents', requireUser, async ({ user, body: { title } }, res) => {
  if (typeof title !== 'string') return res.sendStatus(422);
  if (user.organizationId === null) return res.sendStatus(403);
  const values = { title, ownerId: user.id, organizationId: user.organizationId };
  const [document] = await db.insert(documents).values(values).returning();
  res.status(201).json({ id: document.id });
});
// endregion

router.patch('/documents/:id', requireUser, async (req, res) => {
  const { title } = req.body;
  const mine = eq(documents.organizationId, req.user.organizationId);
  const where = and(eq(documents.id, Number(req.params.id)), mine);
  const [document] = await db.select().from(documents).where(where);
  if (!document) return res.sendStatus(404);
  if (typeof title !== 'string') return res.sendStatus(422);
  await db.update(documents).set({ title }).where(eq(documents.id, document.id));
  res.sendStatus(204);
});

export async function state_users() {
  const rows = await db.select().from(users).orderBy(asc(users.id));
  return rows.map(({ id, name, role, organizationId }) => [id, name, role, organizationId]);
}

export async function state_documents() {
  const { title, ownerId, organizationId, state } = documents;
  const columns = [title, ownerId, organizationId, state];
  return db.selectDistinct({ title, ownerId, organizationId, state }).from(documents).orderBy(...columns);
}
