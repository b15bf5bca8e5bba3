// caller.mjs MODULES REQUESTS MODE COMMAND… | ADDRESS: the official TypeScript client sends the requests of caller.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, path, mode, command, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

setTimeout(() => process.exit(1), 40_000).unref();

const client = new Client(
  { name: "caller.mjs", version: "1.0" },
  {
    capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} },
    versionNegotiation: { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } },
  },
);
const answers = { name: "ann", sure: true };
const logs = [];
client.setRequestHandler("elicitation/create", ({ params }) => {
  const asked = Object.keys(answers).filter((name) => name in params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(asked.map((name) => [name, answers[name]])) };
});
client.setRequestHandler("sampling/createMessage", ({ params }) => {
  const said = params.messages.flatMap(({ content }) => content).map((block) => block.text);
  return { role: "assistant", content: { type: "text", text: said.join(", ") }, model: "parrot" };
});
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: process.env.ROOT_URI, name: "work" }] }));
client.setNotificationHandler("notifications/message", ({ params: { level, data } }) => logs.push({ data, level }));

const sorted = (value) =>
  value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : Array.isArray(value) ? value.map(sorted) : value;
const show = (what, value) => console.log(what, JSON.stringify(sorted(value ?? null)));
const meta = () => client.getNegotiatedProtocolVersion() < "2026" ? {} : { _meta: { "io.modelcontextprotocol/logLevel": "info" } };

async function send(method, params) {
  if (method === "tools/call") {
    const heard = [];
    const onprogress = ({ progress, total, message }) => heard.push([progress, total ?? null, message ?? null]);
    const result = await client.callTool({ ...params, ...meta() }, { onprogress });
    return heard.length ? { result, progress: heard.slice(0, 1) } : result;
  }
  const requests = {
    "tools/list": () => client.listTools(),
    "prompts/list": () => client.listPrompts(),
    "prompts/get": () => client.getPrompt(params),
    "resources/list": () => client.listResources(),
    "resources/templates/list": () => client.listResourceTemplates(),
    "resources/read": () => client.readResource(params),
    "completion/complete": () => client.complete(params),
  };
  return requests[method]();
}

await client.connect(
  command.startsWith("http:")
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env }),
);
show("speaks", client.getNegotiatedProtocolVersion());
for (const [method, params] of JSON.parse(readFileSync(path, "utf8"))) {
  if (method === "wait") {
    while (logs.length < params.logs) await sleep(5); // for so many messages in the log
    continue;
  }
  const what = [method, params.name, params.uri].filter((word) => word !== undefined).join(" ");
  try {
    show(what, await send(method, params));
  } catch (error) {
    show(what, "code" in error ? { code: error.code, message: error.message } : { failed: String(error) });
  }
}
show("log", logs);
show("server", client.getServerVersion());
show("capabilities", client.getServerCapabilities());
show("instructions", client.getInstructions());
await client.close();
