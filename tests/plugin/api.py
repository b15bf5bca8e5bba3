"""The Messages API of a language model that has decided before which tools it uses. Nothing leaves this machine."""

import contextlib
import http.server
import json
import threading


class Api:
    """A server of the API.

    Args:
        steps: the tools that the model uses, one in each turn, as `{"name": …, "input": …}`.
        says: returns what it says then, or without tools, for the text of all messages.

    Attributes:
        url: its address.
        requests: the bodies of the requests with tools.
    """

    def __init__(self, steps=(), says=lambda _: "done"):
        self.steps, self.says, self.requests = steps, says, []
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def message(self, body):
        """The answer to a request."""
        contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        used = {part["tool_use_id"] for content in contents for part in content if part["type"] == "tool_result"}
        is_turn = bool(body.get("tools"))
        if is_turn:
            self.requests.append(body)
        if is_turn and len(used) < len(self.steps):
            content, reason = {"type": "tool_use", "id": f"toolu_{len(used)}", **self.steps[len(used)]}, "tool_use"
        else:
            content, reason = {"type": "text", "text": self.says(_text(body))}, "end_turn"
        return {
            "id": f"msg_{len(used)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [content],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


def _text(body):
    """The text of all messages of a request."""
    contents = [message["content"] for message in body["messages"]]
    parts = [[{"type": "text", "text": each}] if isinstance(each, str) else each for each in contents]
    return "\n".join(part["text"] for each in parts for part in each if part["type"] == "text")


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self._respond(404, "application/json", "{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "count_tokens" in self.path:
            self._respond(200, "application/json", '{"input_tokens": 1}')
            return
        message = self.api.message(body)
        if not body.get("stream"):
            self._respond(200, "application/json", json.dumps(message))
            return
        events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _events(message))
        self._respond(200, "text/event-stream", events)

    def _respond(self, status, kind, text):
        data = text.encode()
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


def _events(message):
    """Yield a message as the events of a stream."""
    (content,) = message["content"]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    if content["type"] == "text":
        begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": content["text"]}
    else:
        begun = {**content, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": begun}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
