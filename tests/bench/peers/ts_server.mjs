// Peer: @modelcontextprotocol/server, the second TypeScript SDK.
import { readFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = readFileSync(new URL("answer.json", import.meta.url), "utf8");
const inputSchema = z.object({ context: z.string().min(1), language: z.enum(["python"]).optional() });
const description = "Which threats matter for this?";

serveStdio(() => {
  const server = new McpServer({ name: "peer", version: "1.0" }, { capabilities: { tools: {} } });
  server.registerTool("tmkb_query", { description, inputSchema }, async () => ({ content: [{ type: "text", text }] }));
  return server;
});
