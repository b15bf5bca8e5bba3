"""What an editor says to a language server over stdin and stdout: the little of LSP that is asked here."""

import json
import subprocess


class Editor:
    """A language server for YAML as a process of its own, for a ``with``."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.told = {}  # address of a file → what is wrong with it, as last told
        self.count = 0

    def __enter__(self):
        self.ask("initialize", processId=None, rootUri=None, capabilities={"workspace": {"configuration": True}})
        self.tell("initialized")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def opened(self, texts):
        """What is wrong with each of these files (address → text): sentences, by address."""
        for uri, text in texts.items():
            self.tell(
                "textDocument/didOpen", textDocument={"uri": uri, "languageId": "yaml", "version": 1, "text": text}
            )
        while texts.keys() - self.told.keys():
            self._hear()
        return {uri: [fault["message"] for fault in self.told[uri]] for uri in texts}

    def hover(self, uri, line, column):
        """The text that is shown when the pointer rests there; lines and columns count from 0."""
        found = self._at("hover", uri, line, column)
        return found["contents"]["value"] if found else ""

    def offers(self, uri, line, column):
        """What can be typed there."""
        return [item["label"] for item in self._at("completion", uri, line, column)["items"]]

    def ask(self, method, **params):
        """The result of a request."""
        self.count += 1
        self._write(id=self.count, method=method, params=params)
        while (message := self._hear()).get("id") != self.count or "method" in message:
            pass
        return message["result"]

    def tell(self, method, **params):
        """Send a notification."""
        self._write(method=method, params=params)

    def _at(self, what, uri, line, column):
        position = {"line": line, "character": column}
        return self.ask(f"textDocument/{what}", textDocument={"uri": uri}, position=position)

    def _hear(self):
        """The next message; what the server asks or tells by itself is dealt with."""
        head = {}
        while line := self.process.stdout.readline().strip():
            name, _, value = line.decode().partition(":")
            head[name.lower()] = value
        message = json.loads(self.process.stdout.read(int(head["content-length"])))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.told[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            wanted = [SETTINGS.get(item["section"]) for item in message["params"]["items"]]
            self._write(id=message["id"], result=wanted)
        elif "method" in message and "id" in message:
            self._write(id=message["id"], result=None)
        return message

    def _write(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()


SETTINGS = {"yaml": {"schemas": {}, "schemaStore": {"enable": False}}}  # only what a file's first line says
