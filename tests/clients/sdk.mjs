// sdk.mjs MODULES COMMAND…: the official TypeScript client against a server over stdio.
import { createRequire } from "node:module";

const [modules, command, ...args] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const client = new Client({ name: "sdk.mjs", version: "1.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
const ask = async (query) => (await client.callTool({ name: "tmkb_query", arguments: query })).content[0].text;
console.log(tools.map((tool) => tool.name));
console.log(await ask({ context: "background job processing" }));
console.log(await ask({ context: "x", language: "java" }));
await client.ping();
await client.close();
