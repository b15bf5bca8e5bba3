// Serve ./app.mjs on a port of its own. Commands come as lines of JSON on standard input; each is answered by a line on
// standard output. The application sees neither.
import console from 'node:console';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

import * as stage from 'tmkb/express';

const answer = process.stdout.write.bind(process.stdout);
globalThis.console = new console.Console(process.stderr);
let application;
let server;
let cases = 0;
const folder = process.cwd();
const environment = { ...process.env };
const globals = Object.getOwnPropertyDescriptors(globalThis);

/** Undo what a case has left in this process, apart from its modules. */
function restore() {
  process.chdir(folder);
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
  for (const key of Reflect.ownKeys(globalThis)) if (!Object.hasOwn(globals, key)) Reflect.deleteProperty(globalThis, key);
  for (const key of Reflect.ownKeys(globals)) Reflect.defineProperty(globalThis, key, globals[key]);
  waited = 0;
}

const commands = {
  async begin({ config }) {
    restore();
    application = await import(`./app.mjs?${cases++}`); // a new module, without what the last case has left
    server = await stage.begin(application, config);
  },
  event: async ({ name, values }) => (await (application[`event_${name}`] ?? stage.events[name])(values)) ?? null,
  state: ({ name }) => application[`state_${name}`](),
  work: () => stage.work(),
  crashes: () => stage.crashes,
  wait: ({ seconds }) => wait(seconds),
};

let waited = 0; // milliseconds by which the clock is advanced
const RealDate = Date;
function wait(seconds) {
  waited += seconds * 1000;
  globalThis.Date = class extends RealDate {
    constructor(...args) {
      super(...(args.length ? args : [RealDate.now() + waited]));
    }
    static now() {
      return RealDate.now() + waited;
    }
  };
}

const listener = createServer((req, res) => server(req, res)).listen(0, '127.0.0.1', async () => {
  answer(`${JSON.stringify({ result: listener.address().port })}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    const { command, ...values } = JSON.parse(line);
    let reply;
    try {
      reply = { result: (await commands[command](values)) ?? null };
    } catch (error) {
      reply = { error: String(error.stack ?? error) };
    }
    answer(`${JSON.stringify(reply)}\n`);
  }
  process.exit();
});
