// everything.mjs MODULES COMMAND… | ADDRESS: the official TypeScript client uses every feature of a server.
// Prints a line for each feature that works. MCP_REVISION in the environment: the revision of the handshake, if not the newest.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, command, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");

const patience = 120_000; // milliseconds for everything
setTimeout(() => process.exit(1), patience).unref();

// --- The client's side: how it answers, and what it is told

const heard = [];
const hear = (kind) => (error, listed) => heard.push(error ? `${error}` : `${kind}: ${listed.length}`);
const client = new Client(
  { name: "everything.mjs", version: "1.0" },
  {
    capabilities: {
      sampling: { tools: {} },
      elicitation: { form: { applyDefaults: true }, url: {} },
      roots: { listChanged: true },
    },
    listChanged: {
      tools: { onChanged: hear("tools"), debounceMs: 0 },
      prompts: { onChanged: hear("prompts"), debounceMs: 0 },
      resources: { onChanged: hear("resources"), debounceMs: 0 },
    },
  },
);

client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => {
  const said = params.messages.flatMap(({ content }) => content).map((block) => block.text ?? block.type);
  return { role: "assistant", content: { type: "text", text: said.join(", ") }, model: "parrot", stopReason: "endTurn" };
});
client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///work", name: "work" }] }));

let user = () => ({ action: "decline" }); // each feature has its own
client.setRequestHandler(types.ElicitRequestSchema, (request, { signal }) => user(request.params, signal));

for (const schema of [
  types.LoggingMessageNotificationSchema,
  types.ProgressNotificationSchema,
  types.ResourceUpdatedNotificationSchema,
  types.ElicitationCompleteNotificationSchema,
]) {
  client.setNotificationHandler(schema, ({ params }) => heard.push(params));
}

// --- What the features need

const call = (name, args = {}, options = undefined) => client.callTool({ name, arguments: args }, undefined, options);
const text = async (name, args) => (await call(name, args)).content.map((block) => block.text).join("\n");
const code = (expected) => (error) => error instanceof types.McpError && error.code === expected;

// Forgets what was heard, does something, and gives what is heard then: so many messages.
async function listen(count, action) {
  heard.length = 0;
  await action();
  while (heard.length < count) await sleep(5);
  return [...heard];
}

const features = {
  async tools() {
    const { tools, nextCursor } = await client.listTools();
    assert(tools.length > 20 && nextCursor === undefined);
    const { content } = await call("test_multiple_content_types");
    assert.deepEqual(content.map((block) => block.type), ["text", "image", "resource"]);
    assert((await call("test_error_handling")).isError);
    await assert.rejects(call("test_none"), code(-32602));
  },

  async "structured output"() {
    await client.listTools(); // from here on the client holds structured content against the output schema
    const { structuredContent } = await call("test_structured_output", { city: "Oslo", degrees: 3.5 });
    assert.deepEqual(structuredContent, { city: "Oslo", degrees: 3.5 });
    assert((await call("test_structured_output", { city: "Oslo", degrees: -300 })).isError);
  },

  // With a token of its own: the client forgets `onprogress` when the result comes in the same chunk.
  async progress() {
    const params = { name: "test_tool_with_progress", arguments: {}, _meta: { progressToken: "mine" } };
    assert.deepEqual(await listen(3, () => client.callTool(params)), [
      { progressToken: "mine", progress: 0, total: 100, message: "Begun" },
      { progressToken: "mine", progress: 50, total: 100 },
      { progressToken: "mine", progress: 100, total: 100, message: "Done" },
    ]);
  },

  async logging() {
    await client.setLoggingLevel("error");
    const logs = await listen(4, () => call("test_log_levels"));
    assert.deepEqual(logs.map(({ level }) => level), ["error", "critical", "alert", "emergency"]);
  },

  async sampling() {
    assert.equal(await text("test_sampling", { prompt: "Say hello" }), "LLM response: Say hello");
    assert.equal(await text("test_sampling_content"), "parrot: What is this?, image, audio");
    assert.equal(await text("test_sampling_tools"), "Stopped because of endTurn.");
  },

  async elicitation() {
    user = () => ({ action: "accept", content: { username: "ann", email: "ann@example.com" } });
    const accepted = await text("test_elicitation", { message: "Who are you?" });
    assert.equal(accepted, 'User response: action=accept, content={"username": "ann", "email": "ann@example.com"}');
    user = () => ({ action: "decline" });
    const declined = await text("test_elicitation", { message: "Who are you?" });
    assert(declined.startsWith("User response: action=decline"));
    user = () => ({ action: "accept", content: {} }); // the client fills in the defaults
    const defaults = await text("test_elicitation_sep1034_defaults");
    assert(defaults.includes('"name": "John Doe", "age": 30, "score": 95.5'));
    user = () => ({ action: "accept", content: { untitledMulti: ["option1", "option3"] } });
    assert((await text("test_elicitation_sep1330_enums")).includes('{"untitledMulti": ["option1", "option3"]}'));
  },

  async "elicitation by url"() {
    user = ({ mode, url }) => ({ action: mode === "url" && url === "https://example.com/sign-in" ? "accept" : "cancel" });
    const completed = await listen(1, async () => {
      assert.equal(await text("test_elicitation_url"), "The user answered accept.");
      await call("test_elicitation_complete");
    });
    assert.deepEqual(completed, [{ elicitationId: "sign-in-1" }]);
    await assert.rejects(call("test_url_elicitation_required"), (error) => {
      assert(error instanceof types.UrlElicitationRequiredError);
      return error.elicitations[0].elicitationId === "sign-in-1";
    });
  },

  async roots() {
    assert.equal(await text("test_roots"), 'Roots: [{"uri": "file:///work", "name": "work"}]');
  },

  async resources() {
    assert.equal((await client.listResources()).resources.length, 4);
    assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
    const { contents } = await client.readResource({ uri: "test://template/7/data" });
    assert.equal(contents[0].text, '{"id":"7","templateTest":true,"data":"Data for ID: 7"}');
    await assert.rejects(client.readResource({ uri: "test://none" }), code(-32002));
  },

  async subscription() {
    const uri = "test://watched-resource";
    const change = () => call("test_trigger_resource_change");
    await client.subscribeResource({ uri });
    assert.deepEqual(new Set(await listen(2, change)), new Set(["resources: 4", { uri }]));
    await client.unsubscribeResource({ uri });
    assert.deepEqual(await listen(1, change), ["resources: 4"]);
  },

  async "changed lists"() {
    assert.match((await listen(1, () => call("test_trigger_tool_change")))[0], /^tools: \d\d$/);
    assert.deepEqual(await listen(1, () => call("test_trigger_prompt_change")), ["prompts: 7"]);
  },

  async prompts() {
    assert.equal((await client.listPrompts()).prompts.length, 7);
    const name = "test_prompt_with_arguments";
    const { messages } = await client.getPrompt({ name, arguments: { arg1: "a", arg2: "b" } });
    assert.equal(messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
    await assert.rejects(client.getPrompt({ name, arguments: { arg1: "a" } }), code(-32602));
  },

  async completion() {
    const complete = async (ref, name, value, args = {}) =>
      (await client.complete({ ref, argument: { name, value }, context: { arguments: args } })).completion.values;
    const prompt = { type: "ref/prompt", name: "test_prompt_with_arguments" };
    const template = { type: "ref/resource", uri: "test://template/{id}/data" };
    assert.deepEqual(await complete(prompt, "arg2", "", { arg1: "park" }), ["bench", "pond"]);
    assert.deepEqual(await complete(template, "id", "12"), ["123", "124"]);
  },

  async "ping meanwhile"() {
    // On a busy machine a ping may take as long as the tool.
    for (let attempt = 0; attempt < 5; attempt++) {
      const slow = call("test_slow").then(({ content }) => content[0].text);
      const first = await Promise.race([slow, client.ping().then(() => "pong")]);
      assert.equal(await slow, "Done at last.");
      if (first === "pong") return;
    }
    assert.fail("no ping was answered while the tool ran");
  },

  // A call is given up, so what its tool asked the user is taken back.
  async cancellation() {
    const giveUp = new AbortController();
    const takenBack = new Promise((resolve) => {
      user = async (_params, signal) => {
        signal.addEventListener("abort", resolve);
        await client.ping();
        giveUp.abort("enough");
        return new Promise(() => {});
      };
    });
    await assert.rejects(call("test_elicitation", { message: "Who are you?" }, { signal: giveUp.signal }), /enough/);
    await takenBack;
  },
};

// The revisions that added what a feature uses.
const since = {
  "structured output": "2025-06-18",
  progress: "2025-03-26",
  sampling: "2025-03-26",
  elicitation: "2025-11-25",
  "elicitation by url": "2025-11-25",
  completion: "2025-06-18",
  cancellation: "2025-06-18",
};

const transport = command.startsWith("http:")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, env: process.env });
const revision = process.env.MCP_REVISION ?? types.LATEST_PROTOCOL_VERSION;
const send = transport.send.bind(transport);
transport.send = (message, options) => {
  if (message.method === "initialize") message.params.protocolVersion = revision;
  return send(message, options);
};
await client.connect(transport);
for (const [name, works] of Object.entries(features)) {
  if (since[name] > revision) continue;
  await works();
  console.log(`${name} ok`);
}
await client.close();
