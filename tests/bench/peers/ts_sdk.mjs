// Peer: @modelcontextprotocol/sdk, the first TypeScript SDK.
import { readFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const text = readFileSync(new URL("answer.json", import.meta.url), "utf8");
const server = new McpServer({ name: "peer", version: "1.0" });
const inputSchema = { context: z.string().min(1), language: z.enum(["python"]).optional() };
const description = "Which threats matter for this?";

server.registerTool("tmkb_query", { description, inputSchema }, async () => ({ content: [{ type: "text", text }] }));
await server.connect(new StdioServerTransport());
