-- For wrk: calls of a tool in turn, each with its own id. Arguments: a file with one session header value per line ("-": none).
local head = {
  ["Content-Type"] = "application/json",
  ["Accept"] = "application/json, text/event-stream",
}
local call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tmkb_query",'
  .. '"arguments":{"context":"background job processing"}%s}}'
local meta = ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
local sessions, count = {}, 0
local threads = {}
refused = 0 -- global, so that `done` can read it

function setup(thread) table.insert(threads, thread) end

function init(args)
  if args[1] ~= "-" then
    for line in io.lines(args[1]) do table.insert(sessions, line) end
  end
end

function request()
  count = count + 1
  if #sessions == 0 then
    head["MCP-Protocol-Version"], head["Mcp-Method"], head["Mcp-Name"] = "2026-07-28", "tools/call", "tmkb_query"
    return wrk.format("POST", "/mcp", head, call:format(count, meta))
  end
  head["MCP-Protocol-Version"], head["Mcp-Session-Id"] = "2025-11-25", sessions[count % #sessions + 1]
  return wrk.format("POST", "/mcp", head, call:format(count, ""))
end

function response(status, _, body)
  if status == 503 then
    refused = refused + 1
  elseif status ~= 200 or not body:find('"result"', 1, true) or body:find('"isError":true', 1, true) then
    io.stderr:write(status, " ", body:sub(1, 300), "\n")
    os.exit(1)
  end
end

function done(summary, latency)
  io.write(string.format("figures %d %d %d %d %d %d\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), threads[1]:get("refused")))
end
