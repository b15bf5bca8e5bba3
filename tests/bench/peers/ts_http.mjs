// Peer: @modelcontextprotocol/sdk over HTTP with sessions, on the port given as argument.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const text = readFileSync(new URL("answer.json", import.meta.url), "utf8");
const inputSchema = { context: z.string().min(1), language: z.enum(["python"]).optional() };
const description = "Which threats matter for this?";
const sessions = new Map();

async function open() {
  const server = new McpServer({ name: "peer", version: "1.0" });
  server.registerTool("tmkb_query", { description, inputSchema }, async () => ({ content: [{ type: "text", text }] }));
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

createServer(async (request, response) => {
  const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await open());
  await transport.handleRequest(request, response);
}).listen(Number(process.argv[2]), "127.0.0.1");
