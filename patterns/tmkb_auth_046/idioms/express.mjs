// Documents, and a policy service. Only a known rule and a known role give permission, and no failure does.
import { and, asc, eq } from 'drizzle-orm';
import { sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, documents, requireUser } from 'tmkb/express';

export const rules = sqliteTable('rules', {
  action: text().primaryKey(),
  leastRole: text('least_role', { mode: 'json' }).notNull(),
});

/** The client of the policy service. */
const policy = {
  error: null,

  /** Return the least role that may perform `action`; undefined without a rule. */
  async leastRole(action) {
    if (this.error) throw this.error;
    const [rule] = await db.select().from(rules).where(eq(rules.action, action));
    return rule?.leastRole;
  },
};

// region idiom
const ranks = new Map([['viewer', 1], ['member', 2], ['admin', 3]]);
async function allowed(role, action) {
  try {
    return (ranks.get(role) ?? 0) >= (ranks.get(await policy.leastRole(action)) ?? Infinity);
  } catch {
    return false;
  }
}
// endregion

export const router = Router();

/** Load the document after the user's permission for the method and `name` is checked. */
const guarded = (name) => [requireUser, demandPermission(name), loadDocument];

function demandPermission(name) {
  return async (req, res, next) => {
    const method = req.method === 'HEAD' ? 'GET' : req.method;
    return (await allowed(req.user.role, `${method} ${name}`)) ? next() : res.sendStatus(403);
  };
}

async function loadDocument(req, res, next) {
  const own = eq(documents.organizationId, req.user.organizationId);
  [req.document] = await db.select().from(documents).where(and(own, eq(documents.id, Number(req.params.id))));
  return req.document ? next() : res.sendStatus(404);
}

router.get('/documents/:id', guarded('documents.document'), (req, res) => res.json({ title: req.document.title }));

router.delete('/documents/:id', guarded('documents.document'), async (req, res) => {
  await db.delete(documents).where(eq(documents.id, req.document.id));
  res.sendStatus(204);
});

router.post('/documents/:id/publish', guarded('documents.publish'), async (req, res) => {
  await db.update(documents).set({ state: 'published' }).where(eq(documents.id, req.document.id));
  res.sendStatus(204);
});

router.get('/documents/:id/history', guarded('documents.history'), (req, res) => {
  res.json({ history: [`created ${req.document.title}`] });
});

export async function event_rule({ action, least_role: leastRole }) {
  await db.insert(rules).values({ action, leastRole }).onConflictDoUpdate({ target: rules.action, set: { leastRole } });
}

export function event_fail({ error }) {
  const response = new SyntaxError('The response is no JSON.');
  policy.error = { timeout: new Error('timeout'), connection: new Error('ECONNREFUSED'), response }[error];
}

export async function event_unpublish() {
  await db.update(documents).set({ state: 'new' }).where(eq(documents.id, 1));
}

export async function state_documents() {
  return (await db.select().from(documents).orderBy(asc(documents.id))).map((each) => [each.title, each.state]);
}
