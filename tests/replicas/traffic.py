"""Clients of every revision that note what becomes of each request, while processes are killed.

Each request has a marker that its answer must repeat. An attempt ends with the answer, with an error after which a client
may try again, or it is a `Wrong` one: another's answer, a second answer, an error that a client cannot act on, or silence.
"""

import collections
import http.client
import itertools
import json
import random
import threading
import time

from tests.soak.clients import HEADERS, described

STATELESS = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
}
INFO = {"name": "traffic", "version": "1.0"}
LONGEST = 20  # seconds for one response; longer is a lost answer
PATIENCE = 30  # seconds for one request with all its attempts
ATTEMPTS = 20  # to resume a stream
PAUSE = 0.1  # seconds between two attempts, unless the server names another time


class Wrong(AssertionError):
    """An answer that must not happen."""


class Again(Exception):
    """An attempt failed, and a client may try again. The text is the kind of failure."""

    def __init__(self, kind, after=PAUSE):
        super().__init__(kind)
        self.after = after


class Broken(Again):
    """A response ended before its answer."""


class SessionLost(Again):
    """The server knows the session no more: the client begins a new one."""


class Notes:
    """What all clients of a run have seen. ``answered``: requests by kind; ``errors``: failed attempts by kind."""

    def __init__(self):
        self.lock = threading.Lock()
        self.answered, self.errors = collections.Counter(), collections.Counter()
        self.resumed = 0  # streams that broke, and went on with the next event
        self.begun_again = 0  # sessions, because the server knew them no more
        self.longest = 0.0  # seconds that one request took, with all attempts
        self.outages = collections.defaultdict(float)  # the longest time without an answer, in seconds, by group
        self.last = {}  # group → time of its latest answer
        self.ending = False  # clients stop, so a time without answers is no outage
        self.failures = []

    def note_answer(self, kind, group, began):
        """Note that a request of a client in ``group``, first sent at ``began``, has its answer."""
        now = time.monotonic()
        with self.lock:
            self.answered[kind] += 1
            self.longest = max(self.longest, now - began)
            for each in () if self.ending else (group, "any"):
                self.outages[each] = max(self.outages[each], now - self.last.get(each, now))
                self.last[each] = now

    def note_error(self, kind):
        """Note a failed attempt."""
        with self.lock:
            self.errors[kind] += 1


class Client(threading.Thread):
    """Makes one request after the other until `stop`, without a session. Each kind of request is a method."""

    kinds, group = ("echo", "slow", "questions"), "stateless"

    def __init__(self, port, notes, seed, token=None):
        super().__init__(daemon=True)
        self.port, self.notes, self.random = port, notes, random.Random(seed)
        self.numbers, self.prefix = itertools.count(1), f"m{seed}-"
        self.over = threading.Event()
        self.event = None  # the id of the latest event
        self.headers = {**HEADERS, **({"Authorization": f"Bearer {token}"} if token else {})}

    def run(self):
        try:
            while not self.over.is_set():
                self.turn(self.random.choice(self.kinds))
                time.sleep(0.01)
            self.finish()
        except Exception as error:  # raised by the thread that waits
            self.notes.failures.append(error)

    def stop(self):
        """Let the client finish what it has begun."""
        self.over.set()
        self.join(2 * PATIENCE)
        if self.is_alive():
            self.notes.failures.append(Wrong("a client still waits for an answer"))

    def turn(self, kind):
        """Make one request of a kind, and repeat it until it is answered."""
        began = time.monotonic()
        while True:
            try:
                getattr(self, kind)(f"{self.prefix}{next(self.numbers)}")
                break
            except Again as failed:
                self.notes.note_error(str(failed))
                if time.monotonic() - began > PATIENCE:
                    raise Wrong(f"{kind} has no answer after {PATIENCE} s: {failed}") from failed
                time.sleep(failed.after)
                self.recover(failed)
        self.notes.note_answer(kind, self.group, began)

    def recover(self, failed):
        """Prepare the next attempt."""

    def finish(self):
        """Say goodbye."""

    def echo(self, marker):
        self.expect(self.call("greet", name=marker), f"Hello, {marker}!")

    def slow(self, marker):
        seconds = self.random.choice([0, 0.05, 0.3])
        self.expect(self.call("slow_compute", capable=False, seconds=seconds, label=marker), f"{marker}: done")

    def questions(self, marker):
        """The questions come as results, and the state in between may go to another replica."""
        answers, state = {}, {}
        for step, content in (("step1", {"name": marker}), ("step2", {"color": "blue"})):
            result = self.call("test_input_required_result_multi_round", **state)
            if list(result.get("inputRequests", {})) != [step]:
                raise Wrong(f"expected the question {step} of {marker}: {result}")
            answers = {step: {"action": "accept", "content": content}}
            state = {"more": {"inputResponses": answers, "requestState": result["requestState"]}}
        self.expect(self.call("test_input_required_result_multi_round", **state), f"{marker} likes blue.")

    def expect(self, result, text):
        """Compare the text of a result."""
        if [block.get("text") for block in result.get("content", ())] != [text]:
            raise Wrong(f"expected {text!r}: {result}")

    def call(self, tool, capable=True, more=None, **arguments):
        """Call a tool. ``capable``: the client can follow tasks."""
        return self.request("tools/call", {"name": tool, "arguments": arguments, **(more or {})}, capable)

    def request(self, method, params, capable=True):
        """Send a request without a session, and return its result. Raises Again."""
        meta = META if capable else {**META, "io.modelcontextprotocol/clientCapabilities": {}}
        message = {"jsonrpc": "2.0", "id": self.new_id(), "method": method, "params": {**params, "_meta": meta}}
        return self.answer(message, described(message) | ({"Mcp-Name": params["taskId"]} if "taskId" in params else {}))

    def new_id(self):
        """Return an id that no other request of any client has."""
        return f"{self.prefix}id{next(self.numbers)}"

    def answer(self, message, headers):
        """Send a request, and return its result. Raises Again, or Wrong for anything but one answer."""
        status, head, events = self.exchange("POST", headers, message)
        return self.judge(message, status, head, events)

    def judge(self, message, status, head, events):
        """Return the result among the messages of a response. Raises Again, or Wrong for anything but one answer."""
        answers = [event for event in events if "method" not in event]
        if status == 200 and not answers:
            raise Broken("response without an answer")
        if len(answers) != 1:
            raise Wrong(f"{len(answers)} answers to {message}: {status} {events}")
        self.check_status(status, head, answers[0], message)
        if answers[0].get("id") != message["id"]:
            raise Wrong(f"the answer belongs to another request: {message} {answers}")
        if "error" in answers[0]:
            raise self.error(answers[0]["error"], message)
        return answers[0]["result"]

    def check_status(self, status, head, answer, message):
        """Raise what a status other than 200 means."""
        if status == 200:
            return
        text = answer.get("error", {}).get("message")
        if not text or answer.get("id") not in (None, message.get("id")):
            raise Wrong(f"{status} without a clear error: {answer}")
        if status in (429, 503):
            raise Again(f"{status} {text}", min(1.0, float(head.get("retry-after", PAUSE))))
        if status == 404:
            raise SessionLost(f"404 {text}")
        raise Wrong(f"{status} {text}")

    def error(self, error, message):
        """Return what an error in an answer means."""
        if message["method"] == "tasks/get" and "Unknown task" in error["message"]:
            return Again("task lost")
        if "has ended. The request may have been carried out" in error["message"]:
            return Again(f"error {error['message']}")
        return Wrong(f"{message}: {error}")

    def exchange(self, verb, headers, message=None, hear=lambda event: None):
        """Return status, headers and messages of a response, each passed to ``hear`` when it comes. Raises Again."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST)
        body = None if message is None else json.dumps(message)
        try:
            connection.request(verb, "/mcp", body, {**self.headers, **headers})
            response = connection.getresponse()
            return response.status, response.headers, [*self.events(response, hear)]
        except TimeoutError as error:
            raise Wrong(f"no answer after {LONGEST} s: {message}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"connection: {type(error).__name__}") from error
        finally:
            connection.close()

    def events(self, response, hear):
        """Yield the messages of a response, which is JSON or a stream of events."""
        if "event-stream" not in response.headers.get("content-type", ""):
            body = response.read()
            if body.startswith(b"{"):
                yield json.loads(body)
            return
        for line in response:
            if line.startswith(b"id: "):
                self.event = line[4:].strip().decode()
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                hear(event)
                yield event


class TaskClient(Client):
    """A client whose calls go on as tasks."""

    kinds, group = ("task",), "tasks"

    def task(self, marker):
        """The task runs on one replica, and the others are asked about it."""
        task = self.call("slow_compute", seconds=0.2, label=marker)["taskId"]
        deadline = time.monotonic() + LONGEST
        while (found := self.request("tasks/get", {"taskId": task}))["status"] == "working":
            if time.monotonic() > deadline:
                raise Wrong(f"the task of {marker} does not end")
            time.sleep(0.05)
        if found["status"] == "failed":
            raise Again("task failed")
        self.expect(found["result"], f"{marker}: done")


class SessionClient(Client):
    """A client with a handshake. It keeps its session as long as the server does."""

    kinds, group = ("echo", "slow", "question"), "sessions"

    def __init__(self, port, notes, seed, revision, token=None):
        super().__init__(port, notes, seed, token)
        self.revision, self.session = revision, None

    def question(self, marker):
        """The server's question arrives in the response, and the client's answer may reach another replica."""
        self.expect(self.call("test_sampling", prompt=marker), f"LLM response: {marker}")

    def request(self, method, params, capable=True):
        """Send a request in the session, which begins when it is needed. Raises Again."""
        if self.session is None:
            self.begin()
        return self.answer({"jsonrpc": "2.0", "id": self.new_id(), "method": method, "params": params}, self.named())

    def answer(self, message, headers):
        """Also resume a stream that breaks."""
        self.event = None
        try:
            return super().answer(message, headers)
        except Broken:
            if self.event is None:
                raise
        result = self.resume(message)
        self.notes.resumed += 1
        return result

    def resume(self, message):
        """Read on after the latest event, which any replica knows, and return the result. Raises Again."""
        for _ in range(ATTEMPTS):
            try:
                status, head, events = self.exchange("GET", {"Last-Event-ID": self.event, **self.named()})
                return self.judge(message, status, head, events)
            except Broken:
                time.sleep(PAUSE)
        raise Again("stream could not be resumed")

    def begin(self):
        """Shake hands."""
        params = {"protocolVersion": self.revision, "capabilities": {"sampling": {}}, "clientInfo": INFO}
        message = {"jsonrpc": "2.0", "id": self.new_id(), "method": "initialize", "params": params}
        status, head, events = self.exchange("POST", {}, message)
        if len(events) != 1:
            raise Wrong(f"{len(events)} answers to {message}: {status} {events}")
        self.check_status(status, head, events[0], message)
        if events[0]["id"] != message["id"] or events[0]["result"]["protocolVersion"] != self.revision:
            raise Wrong(f"not the answer to {message}: {events}")
        session = head["mcp-session-id"]
        self.notify({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        self.session = session  # if the notification fails, the next attempt begins anew

    def named(self, session=None):
        """The headers of the session."""
        return {"Mcp-Session-Id": session or self.session, "MCP-Protocol-Version": self.revision}

    def notify(self, message, session=None):
        """Send a message that has no answer."""
        status, head, events = self.exchange("POST", self.named(session), message)
        if status != 202:
            self.check_status(status, head, (events or [{}])[0], message)

    def exchange(self, verb, headers, message=None, hear=None):
        """Also answer the questions that arrive."""
        return super().exchange(verb, headers, message, hear or self.hear)

    def hear(self, event):
        """Answer a question of the server."""
        if event.get("method") == "sampling/createMessage":
            time.sleep(self.random.choice([0, 0.4]))  # a model takes its time
            said = event["params"]["messages"][0]["content"]
            result = {"role": "assistant", "content": said, "model": "parrot", "stopReason": "endTurn"}
            self.notify({"jsonrpc": "2.0", "id": event["id"], "result": result})

    def recover(self, failed):
        """Forget a session that the server has lost."""
        if isinstance(failed, SessionLost):
            self.session = None
            self.notes.begun_again += 1

    def finish(self):
        """End the session."""
        if self.session is not None:
            self.exchange("DELETE", self.named())


def clients(port, notes, token=None):
    """Return one client for each revision with a handshake, and four without a session, one of them with tasks."""
    sessions = [SessionClient(port, notes, number, revision, token) for number, revision in enumerate(HANDSHAKE)]
    return [
        *sessions,
        *(Client(port, notes, 10 + number, token) for number in range(3)),
        TaskClient(port, notes, 20, token),
    ]
