// results.mjs MODULES MODE COMMAND… | ADDRESS: the official TypeScript client prints every result of the server everything.
// It makes the same requests as results.py.
import { createRequire } from "node:module";

const [modules, mode, command, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

setTimeout(() => process.exit(1), 120_000).unref();

const client = new Client(
  { name: "results.mjs", version: "1.0" },
  {
    capabilities: { sampling: { tools: {} }, elicitation: { form: {}, url: {} }, roots: {} },
    versionNegotiation: { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } },
  },
);
const known = { username: "ann", email: "ann@example.com" };
let action = "accept";
client.setRequestHandler("elicitation/create", ({ params }) => {
  if (action !== "accept") return { action };
  const names = Object.keys(params.requestedSchema.properties);
  return { action, content: Object.fromEntries(names.map((name) => [name, known[name]])) };
});
client.setRequestHandler("sampling/createMessage", ({ params }) => {
  const said = params.messages.flatMap(({ content }) => content).map((block) => block.text);
  return { role: "assistant", content: { type: "text", text: said.join(", ") }, model: "parrot" };
});
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///work", name: "work" }] }));

const sorted = (value) =>
  value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : Array.isArray(value) ? value.map(sorted) : value;
const show = (what, value) => console.log(what, JSON.stringify(sorted(value)));
const showResult = (what, request) =>
  request.then((result) => show(what, result), ({ code, message }) => show(what, { code, message }));
const call = (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, options);

await client.connect(
  command.startsWith("http:")
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env }),
);
show("speaks", client.getNegotiatedProtocolVersion());
await showResult("tools", client.listTools());
await showResult("prompts", client.listPrompts());
await showResult("resources", client.listResources());
await showResult("templates", client.listResourceTemplates());
for (const name of ["test_simple_text", "test_multiple_content_types", "test_error_handling", "test_none"]) {
  await showResult(name, call(name));
}
await showResult("structured", call("test_structured_output", { city: "Oslo", degrees: 3.5 }));
const progressed = [];
await showResult("progress", call("test_tool_with_progress", {}, { onprogress: (progress) => progressed.push(progress) }));
show("progressed", progressed.slice(0, 2)); // the last comes with the response, and may be dropped
await showResult("sampling", call("test_sampling", { prompt: "Say hello" }));
for (action of ["accept", "decline"]) await showResult(action, call("test_elicitation", { message: "Who are you?" }));
await showResult("roots", call("test_roots"));
await showResult("read", client.readResource({ uri: "test://template/7/data" }));
await showResult("read none", client.readResource({ uri: "test://none" }));
const name = "test_prompt_with_arguments";
await showResult("prompt", client.getPrompt({ name, arguments: { arg1: "a", arg2: "b" } }));
await showResult("bad prompt", client.getPrompt({ name, arguments: { arg1: "a" } }));
const ref = { type: "ref/resource", uri: "test://template/{id}/data" };
await showResult("completion", client.complete({ ref, argument: { name: "id", value: "12" } }));
await client.close();
