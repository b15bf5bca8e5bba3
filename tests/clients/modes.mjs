// modes.mjs MODULES MODE COMMAND… | ADDRESS: the second official TypeScript client, in one of its modes: legacy, auto or a revision.
// Prints the revision that is spoken, and a line for each feature that works.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, mode, command, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const patience = 120_000; // milliseconds for everything
setTimeout(() => process.exit(1), patience).unref();

// --- The client's side: how it answers, and what it is told

const client = new Client(
  { name: "modes.mjs", version: "1.0" },
  {
    capabilities: { sampling: { tools: {} }, elicitation: { form: {}, url: {} }, roots: {} },
    versionNegotiation: { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } },
  },
);
const known = { username: "ann", email: "ann@example.com", name: "ann", color: "blue", context: "a garden" };
let action = "accept";
client.setRequestHandler("elicitation/create", ({ params }) => {
  if (action !== "accept" || params.mode === "url") return { action };
  const names = Object.keys(params.requestedSchema.properties);
  return { action, content: Object.fromEntries(names.map((name) => [name, known[name]])) };
});
client.setRequestHandler("sampling/createMessage", ({ params }) => {
  const said = params.messages.flatMap(({ content }) => content).map((block) => block.text ?? block.type);
  return { role: "assistant", content: { type: "text", text: said.join(", ") }, model: "parrot", stopReason: "endTurn" };
});
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///work", name: "work" }] }));

const heard = [];
for (const method of ["message", "progress", "tools/list_changed", "prompts/list_changed", "resources/updated"]) {
  client.setNotificationHandler(`notifications/${method}`, ({ params }) => heard.push({ method, ...params }));
}

// --- What the features need

const call = (name, args = {}, more = {}) => client.callTool({ name, arguments: args, ...more });
const text = async (name, args) => (await call(name, args)).content.map((block) => block.text).join("\n");
const code = (expected) => (error) => error.code === expected;
const stateless = mode !== "legacy";

// Forgets what was heard, does something, and gives what is heard then: so many messages.
async function listen(count, action) {
  heard.length = 0;
  await action();
  while (heard.length < count) await sleep(5);
  return [...heard];
}

const query = {
  async query() {
    assert.match(await text("tmkb_query", { context: "background job processing" }), /TMKB-AUTH-001/);
    const refused = await call("tmkb_query", { context: "x", language: "java" });
    assert(refused.isError);
    assert.equal(refused.content[0].text, "Invalid language 'java'. Supported languages: python");
  },
};

// Those of the server sysmcp: what the client takes for the result has the envelope in it.
const system = {
  async "six tools"() {
    const data = async (name, args) => {
      const { content, structuredContent, isError } = await call(name, args);
      const envelope = JSON.parse(content[0].text);
      assert.deepEqual(structuredContent, envelope);
      assert.equal(isError, !envelope.success);
      return envelope.success ? envelope.data : envelope.error.details.reason;
    };
    assert.deepEqual((await data("eventlog_list_logs")).logs.map(({ name }) => name), ["System"]);
    assert.equal((await data("eventlog_query", { logName: "System", limit: 5 })).entries.length, 5);
    assert.deepEqual((await data("fs_search", { pattern: "*.txt" })).files.map(({ path }) => path), ["motto.txt"]);
    assert.equal((await data("fs_stat", { path: "motto.txt" })).size, 17);
    assert.equal((await data("reg_read", { path: "HKLM\\SYSTEM\\Select" })).values[0].data, 1);
    const change = { path: "HKLM\\SYSTEM\\Select", valueName: "Current", type: "REG_DWORD", data: 2 };
    assert.equal(await data("reg_write", change), "ReadOnly");
  },
};

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
    const { structuredContent } = await call("test_structured_output", { city: "Oslo", degrees: 3.5 });
    assert.deepEqual(structuredContent, { city: "Oslo", degrees: 3.5 });
  },

  async progress() {
    const told = await listen(3, () => call("test_tool_with_progress", {}, { _meta: { progressToken: "mine" } }));
    assert.deepEqual(told.map(({ progressToken, progress }) => [progressToken, progress]), [["mine", 0], ["mine", 50], ["mine", 100]]);
  },

  async logging() {
    if (!stateless) await client.setLoggingLevel("error");
    const more = stateless ? { _meta: { "io.modelcontextprotocol/logLevel": "error" } } : {};
    const logs = await listen(4, () => call("test_log_levels", {}, more));
    assert.deepEqual(logs.map(({ level }) => level), ["error", "critical", "alert", "emergency"]);
  },

  async sampling() {
    assert.equal(await text("test_sampling", { prompt: "Say hello" }), "LLM response: Say hello");
    assert.equal(await text("test_sampling_content"), "parrot: What is this?, image, audio");
    assert.equal(await text("test_sampling_tools"), "Stopped because of endTurn.");
  },

  async elicitation() {
    const accepted = await text("test_elicitation", { message: "Who are you?" });
    assert.equal(accepted, 'User response: action=accept, content={"username": "ann", "email": "ann@example.com"}');
    action = "decline";
    assert.match(await text("test_elicitation", { message: "Who are you?" }), /^User response: action=decline/);
    action = "accept";
  },

  async "elicitation by url"() {
    assert.equal(await text("test_elicitation_url"), "The user answered accept.");
  },

  async "several questions"() {
    assert.equal(await text("test_input_required_result_multiple_inputs"), "All inputs received.");
  },

  async "several rounds"() {
    assert.equal(await text("test_input_required_result_multi_round"), "ann likes blue.");
  },

  async "a prompt that asks"() {
    const { messages } = await client.getPrompt({ name: "test_input_required_result_prompt" });
    assert.equal(messages[0].content.text, "Use this context: a garden");
  },

  async roots() {
    assert.equal(await text("test_roots"), 'Roots: [{"uri": "file:///work", "name": "work"}]');
  },

  async resources() {
    assert.equal((await client.listResources()).resources.length, 4);
    assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
    const { contents } = await client.readResource({ uri: "test://template/7/data" });
    assert.equal(contents[0].text, '{"id":"7","templateTest":true,"data":"Data for ID: 7"}');
    await assert.rejects(client.readResource({ uri: "test://none" }), ({ data }) => data.uri === "test://none");
  },

  async "changed lists"() {
    const uri = "test://watched-resource";
    const stream = stateless
      ? await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] })
      : await client.subscribeResource({ uri });
    const told = await listen(2, async () => {
      await call("test_trigger_tool_change");
      await call("test_trigger_resource_change");
    });
    assert.deepEqual(told.map(({ method }) => method), ["tools/list_changed", "resources/updated"]);
    if (stateless) await stream.close();
    else await client.unsubscribeResource({ uri });
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

  // A call is given up, and the next is answered.
  async cancellation() {
    const giveUp = new AbortController();
    const slow = client.callTool({ name: "test_slow", arguments: {} }, { signal: giveUp.signal });
    const refused = assert.rejects(slow);
    await client.listTools();
    giveUp.abort("enough");
    await refused;
    assert.equal(await text("test_simple_text"), "This is a simple text response for testing.");
  },
};

await client.connect(
  command.startsWith("http:")
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env }),
);
console.log(`speaks ${client.getNegotiatedProtocolVersion()}`);
const { tools } = await client.listTools();
const others = { tmkb_query: query, reg_write: system };
const other = tools.map(({ name }) => others[name]).find((found) => found);
for (const [name, works] of Object.entries(other ?? features)) {
  await works();
  console.log(`${name} ok`);
}
await client.close();
