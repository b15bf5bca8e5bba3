// The API key and the members of an organization. All routes are in one router, below its guard.
import { asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser, users } from 'tmkb/express';

export const settings = sqliteTable('settings', {
  organizationId: integer('organization_id').primaryKey(),
  apiKey: text('api_key'),
});

const reports = Router();

reports.get('/members.csv', async (req, res) => {
  res.type('text/csv').send((await members(req.user)).map(({ name, role }) => `${name},${role}`).join('\n'));
});

// region idiom
const isAdmin = (user) => user.organizationId !== null && user.role === 'admin';
const administration = Router();
administration.use(requireUser, (req, res, next) => (isAdmin(req.user) ? next() : res.sendStatus(403)));
administration.route('/key').get(showKey).put(replaceKey).delete(revokeKey);
administration.get('/members', listMembers);
administration.use(reports); // which has no guard
// endregion

export const router = Router();
router.use(administration);

/** Answer OPTIONS before any guard, as middleware for CORS does. */
export function configure(server) {
  server.use((req, res, next) => (req.method === 'OPTIONS' ? res.sendStatus(200) : next()));
}

const ofOrganization = (user) => eq(settings.organizationId, user.organizationId);

async function showKey(req, res) {
  const [{ apiKey }] = await db.select().from(settings).where(ofOrganization(req.user));
  res.json({ key: apiKey });
}

async function replaceKey(req, res) {
  await db.update(settings).set({ apiKey: String(req.body.api_key) }).where(ofOrganization(req.user));
  res.sendStatus(204);
}

async function revokeKey(req, res) {
  await db.update(settings).set({ apiKey: null }).where(ofOrganization(req.user));
  res.sendStatus(204);
}

async function listMembers(req, res) {
  res.json((await members(req.user)).map(({ name, role }) => `${name} is ${role}`));
}

function members({ organizationId }) {
  return db.select().from(users).where(eq(users.organizationId, organizationId)).orderBy(asc(users.id));
}

export async function event_begin() {
  await db.insert(settings).values([
    { organizationId: 1, apiKey: 'acme-4200' },
    { organizationId: 2, apiKey: 'globex-31' },
  ]);
}

export async function state_key() {
  const [{ apiKey }] = await db.select().from(settings).where(eq(settings.organizationId, 1));
  return apiKey;
}
