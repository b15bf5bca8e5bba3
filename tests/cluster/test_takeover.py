"""Random histories of three replicas in one process, with a real Redis: requests, answers, resumption and crashes.

The network between replicas is a function call, which fails for a replica that has crashed. Everything else is real.
"""

import asyncio
import contextlib
import itertools
import json

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.cluster.servers import Redis, events
from tmkb.transport.guard import Guard
from tmkb.transport.http import Request

pytestmark = [pytest.mark.process, pytest.mark.needs("redis", "httpx2")]
LOCAL = {"host": "localhost", "content-type": "application/json", "accept": "application/json, text/event-stream"}
ASKS = {"elicitation": {}}
COUNT = 3


class Network:
    """Forwards to the replica with an address, unless it has crashed."""

    def __init__(self, replicas):
        self.replicas = replicas

    async def send(self, request, place):
        replica = next((each for each in self.replicas if each.directory.address == place.address), None)
        if replica is None:
            raise ConnectionRefusedError
        headers = {**request.headers, "tmkb-forwarded-to": place.owner}
        response = await replica.respond(request._replace(headers=headers))
        if response.status == 421:
            raise ConnectionRefusedError
        response.replica = getattr(response, "replica", replica)
        return response

    async def forget(self, address):
        pass

    async def close(self):
        pass


class Session:
    """What a client knows: the id, the open response, the last event, and the answers by request id."""

    def __init__(self, id_):
        self.id = id_
        self.headers = {**LOCAL, "mcp-session-id": id_}
        self.numbers = itertools.count(1)
        self.response = self.last = None
        self.waiting = None  # the id of the request
        self.question = None  # the id of the server's request
        self.answered_question = False
        self.seen = set()  # ids of events
        self.answers = {}  # id → number of responses


class Replicas(RuleBasedStateMachine):
    sessions = Bundle("sessions")
    make = redis = None  # set by the test

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.redis.command("FLUSHALL")
        self.addresses = (f"replica-{number}" for number in itertools.count())
        self.replicas = []
        self.known = []
        for _ in range(COUNT):
            self.start()

    def run(self, coroutine):
        return self.runner.run(coroutine)

    def start(self):
        replica = self.make(next(self.addresses))
        replica.forwarder = Network(self.replicas)
        self.run(replica.start())
        self.replicas.append(replica)

    async def post(self, at, session, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return await self.respond(at, Request("POST", "/mcp", session.headers if session else LOCAL, body))

    async def respond(self, at, request):
        replica = self.replicas[at]
        response = await replica.respond(request._replace(caller=replica.endpoint.admit(request)))
        response.replica = getattr(response, "replica", replica)
        return response

    async def read(self, session):
        """Read what has arrived in the open response, as the ASGI application sends it."""
        response = session.response
        if response is None or response.replica not in self.replicas:
            session.response = None
            return
        response.replica.endpoint.on_idle(response)
        body = response.take()
        await response.settle()
        if response.aborted:
            session.response = None
            return
        for id_, message in events(body.decode().splitlines()):
            self.note(session, id_, message)
        if response.ended:
            session.response = None

    def note(self, session, id_, message):
        session.last = id_
        if message is None or id_ in session.seen:
            return
        session.seen.add(id_)
        if "method" in message:
            session.question = message["id"]
        else:
            session.answers[message["id"]] = session.answers.get(message["id"], 0) + 1
            session.waiting = session.question = None

    @rule(target=sessions, at=st.integers(0, COUNT - 1))
    def initialize(self, at):
        params = {"protocolVersion": "2025-11-25", "capabilities": ASKS, "clientInfo": {"name": "c", "version": "1"}}
        response = self.run(self.post(at, None, id=0, method="initialize", params=params))
        assert response.status == 200
        session = Session(response.headers["mcp-session-id"])
        assert self.run(self.post(at, session, method="notifications/initialized")).status == 202
        self.known.append(session)
        return session

    @rule(session=sessions, at=st.integers(0, COUNT - 1))
    def call(self, session, at):
        response = self.run(
            self.post(
                at, session, id="quick", method="tools/call", params={"name": "greet", "arguments": {"name": "x"}}
            )
        )
        assert "Hello, x!" in response.take().decode()

    @rule(session=sessions, at=st.integers(0, COUNT - 1))
    def ask(self, session, at):
        if session.waiting is None:
            id_ = session.waiting = next(session.numbers)
            session.last, session.answered_question = None, False
            params = {"name": "confirm_delete", "arguments": {"filename": "f"}}
            session.response = self.run(self.post(at, session, id=id_, method="tools/call", params=params))
            self.run(self.read(session))

    @rule(session=sessions, at=st.integers(0, COUNT - 1))
    def answer(self, session, at):
        if session.question is not None:
            result = {"action": "accept", "content": {"confirm": True}}
            assert self.run(self.post(at, session, id=session.question, result=result)).status == 202
            session.question, session.answered_question = None, True

    @rule(session=sessions)
    def listen(self, session):
        self.run(self.read(session))

    @rule(session=sessions, at=st.integers(0, COUNT - 1))
    def resume(self, session, at):
        if session.response is None and session.waiting is not None and session.last is not None:
            headers = {**session.headers, "accept": "text/event-stream", "last-event-id": session.last}
            session.response = self.run(self.respond(at, Request("GET", "/mcp", headers, b"")))
            assert session.response.status == 200
            self.run(self.read(session))

    @rule(at=st.integers(0, COUNT - 1))
    def crash(self, at):
        replica = self.replicas.pop(at)
        self.run(kill(replica))
        self.start()

    @rule(at=st.integers(0, COUNT - 1))
    def retire(self, at):
        replica = self.replicas.pop(at)

        async def end():
            replica.drain()
            await asyncio.sleep(0)
            await replica.stop()

        self.run(end())
        self.start()

    @invariant()
    def nothing_is_answered_twice(self):
        owners = [id_ for replica in self.replicas for id_ in replica.endpoint.sessions]
        assert len(owners) == len({*owners})

    def finish(self, session):
        """Get the answer to the request that waits, if the client knows an event to resume from."""
        self.listen(session)
        self.resume(session, 0)
        if session.waiting is not None and session.last is not None:
            assert session.question is not None or session.answered_question, vars(session)
            self.answer(session, 1)
            for _ in range(3):
                self.listen(session)
                self.resume(session, 2)
            assert session.waiting is None, vars(session)
        assert {*session.answers.values()} <= {1}

    def teardown(self):
        for session in self.known:
            self.finish(session)
        for replica in self.replicas:
            self.run(kill(replica))
        self.runner.close()


async def kill(replica):
    """End a replica without any last words."""
    from tmkb.cluster import store

    await store.end(
        [
            replica.writer,
            *replica.directory.tasks,
            *replica.directory.publishing,
            *filter(None, [replica.directory.asking]),
        ]
    )
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await replica.directory.client.aclose()


def test_every_request_is_answered_at_most_once(runtimes, quiet):
    from tmkb.cluster.replica import Replica
    from tmkb.cluster.store import Store
    from tmkb.server.runtime import Runtime

    source = runtimes("everything")
    redis = Redis()

    def make(address):
        runtime = Runtime(source.spec, source.provider, quiet(source.spec))
        return Replica(runtime, Guard(), Store(redis.url, address, runtime))

    class Machine(Replicas):
        pass

    Machine.make, Machine.redis = staticmethod(make), redis
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=3, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )
    finally:
        redis.kill()
