// Employees, whose profiles contain the fields that are listed by name for their reader.
import { and, asc, eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Router } from 'express';
import { db, requireUser } from 'tmkb/express';

export const employees = sqliteTable('employees', {
  id: integer().primaryKey(),
  userId: integer('user_id').notNull(),
  organizationId: integer('organization_id').notNull(),
  name: text().notNull(),
  title: text().notNull().default('Engineer'),
  salary: integer().notNull(),
  notes: text().notNull(),
  bankAccount: text('bank_account').notNull(), // for the payroll job only
});

// region idiom
function profile(user, employee) { // load the employee with a tenant condition
  const { id, name, title, salary, notes } = employee;
  if (user.role === 'hr') return { id, name, title, salary, notes };
  if (employee.userId === user.id) return { id, name, title, salary };
  return { id, name, title };
}
// endregion

const isColleague = (user) => eq(employees.organizationId, user.organizationId);

export const router = Router();

router.get('/employees', requireUser, async ({ user }, res) => {
  const rows = await db.select().from(employees).where(isColleague(user)).orderBy(asc(employees.id));
  res.json(rows.map((employee) => profile(user, employee)));
});

router.patch('/employees/me', requireUser, async ({ user, body: { title } }, res) => {
  const where = and(isColleague(user), eq(employees.userId, user.id));
  const [employee] = await db.update(employees).set({ title }).where(where).returning();
  return employee ? res.json(profile(user, employee)) : res.sendStatus(404);
});

router.get('/employees/:id', requireUser, async ({ user, params }, res) => {
  const where = and(isColleague(user), eq(employees.id, Number(params.id)));
  const [employee] = await db.select().from(employees).where(where);
  return employee ? res.json(profile(user, employee)) : res.sendStatus(404);
});

export async function event_hire({ user_id: userId, organization_id: organizationId, bank_account, ...values }) {
  await db.insert(employees).values({ userId, organizationId, bankAccount: bank_account, ...values });
}

export async function state_titles() {
  return (await db.select().from(employees).orderBy(asc(employees.id))).map((employee) => employee.title);
}
