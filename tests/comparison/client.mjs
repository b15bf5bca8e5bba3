// client.mjs MODULES COMMAND… | URL: the official TypeScript client lists the tools, calls them, and prints what it got.
import { createRequire } from "node:module";

const [modules, command, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const client = new Client({ name: "client.mjs", version: "1.0" }, { versionNegotiation: { mode: "legacy" } });
const overHttp = command.startsWith("http");
const stdio = () => new StdioClientTransport({ command, args, env: process.env });
await client.connect(overHttp ? new StreamableHTTPClientTransport(new URL(command)) : stdio());
const names = (await client.listTools()).tools.map((tool) => tool.name);
console.log(names.join(" "));
const given = { forecast: { city: "Oslo" }, login: { password: "correct horse battery staple" } };
for (const name of Object.keys(given).filter((name) => names.includes(name))) {
  console.log((await client.callTool({ name, arguments: given[name] })).content[0].text);
}
await client.close();
