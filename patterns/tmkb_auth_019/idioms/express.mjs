// Payslips of organizations. Counts use the condition for visible payslips; averages are of five or more people.
import { and, asc, avg, count, eq, gte, sql } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const payslips = sqliteTable('payslips', {
  id: integer().primaryKey(),
  userId: integer('user_id').notNull(),
  department: text().notNull(),
  amount: integer().notNull(),
  organizationId: integer('organization_id').notNull(),
});

export const router = Router();

function visiblePayslips({ id, role, organizationId }) {
  const own = eq(payslips.organizationId, organizationId);
  return role === 'admin' ? own : and(own, eq(payslips.userId, id));
}

// region idiom
router.get('/payslips', requireUser, async (req, res) => {
  const chosen = gte(payslips.amount, Number(req.query.above) || 0);
  const where = and(visiblePayslips(req.user), chosen); // for the page and its numbers
  const page = await db.select().from(payslips).where(where).orderBy(asc(payslips.id)).limit(20);
  res.json({ ids: page.map(({ id }) => id), total: await db.$count(payslips, where) });
});
// endregion

router.get('/payslips/departments', requireUser, async (req, res) => {
  const counts = db.select({ department: payslips.department, total: count() }).from(payslips);
  const rows = await counts.where(visiblePayslips(req.user)).groupBy(payslips.department);
  res.json(Object.fromEntries(rows.map(({ department, total }) => [department, total])));
});

router.get('/payslips/averages', requireUser, async (req, res) => {
  const people = db
    .select({ department: payslips.department, pay: avg(payslips.amount).as('pay') })
    .from(payslips)
    .where(eq(payslips.organizationId, req.user.organizationId))
    .groupBy(payslips.department, payslips.userId)
    .as('people');
  const groups = db
    .select({ department: people.department, mean: avg(people.pay).as('mean') })
    .from(people)
    .groupBy(people.department)
    .having(gte(count(), 5))
    .as('groups');
  const averages = sql`json_group_object(${groups.department}, ${groups.mean})`;
  const [{ json }] = await db.select({ json: averages }).from(groups);
  res.type('json').send(json);
});

/** Pay one person several times. */
export async function event_pay({ user_id: userId, department, amounts, organization_id: organizationId }) {
  await db.insert(payslips).values(amounts.map((amount) => ({ userId, department, amount, organizationId })));
}

export async function event_pay_each({ user_ids: userIds, amounts, ...values }) {
  for (const [at, id] of userIds.entries()) await event_pay({ user_id: id, amounts: [amounts[at]], ...values });
}
