"""The state of one peer."""

from __future__ import annotations

from itertools import count

from tmkb.protocol import negotiation
from tmkb.protocol.budget import Budget
from tmkb.protocol.caller import ANONYMOUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tmkb.protocol.caller import Caller
    from tmkb.protocol.messages import Id
    from tmkb.protocol.requests import Exchange
    from tmkb.protocol.tasks import Tasks
    from tmkb.providers.operation import Question
    from tmkb.schema.model import LogLine, Revision, Spec
    from tmkb.schema.values import JsonObject

    # tool → (revision, arguments) → the log line with its fields, the encoded result, and its facts
    ResultCache = dict[str, dict[tuple[object, ...], tuple[LogLine, dict[str, object], bytes, JsonObject]]]
    # method, revision, first entry, permissions → the encoded page
    ListCache = dict[tuple[str, str, int, object], bytes]


class Snapshot:
    """A spec with caches of encoded lists and results. A reload makes a new snapshot, so caches need no clearing."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.list_cache: ListCache = {}
        self.result_cache: ResultCache = {}


class Connection:
    """One peer: its lifecycle state, its negotiated revision and capabilities, its requests and subscriptions."""

    def __init__(
        self, snapshot: Snapshot, tasks: Tasks | None = None, traced: bool = False, caller: Caller = ANONYMOUS
    ) -> None:
        """Initialize the state of a new peer.

        Args:
            snapshot: what is served until the next reload.
            tasks: the tasks of the server; None if it does not support tasks.
            traced: whether to return effects for the debug log.
            caller: the owner of the requests, identified by an access token.
        """
        self.snapshot = snapshot
        self.caller = caller
        self.budget = Budget(self.spec["server"]["limits"]["session_bytes"])
        self.tasks = tasks
        self.headers: Mapping[str, str] | None = None  # of the HTTP request, by lower-case name
        self.traced = traced
        self.clock: Callable[[], float] | None = None  # seconds; set if requests are observed
        self.trace_headers: Mapping[str, str] = {}  # of the HTTP request whose message is received, for observers
        self.negotiated: Revision | None = None
        self.state = self._start()
        self.capabilities: JsonObject = {}  # the client's
        self.server_capabilities: JsonObject | None = None  # as declared in the handshake
        self.log_level: str | None = None
        self.subscribed: set[str] = set()
        # Requests without a response, by id; None if only the rest of the batch is missing.
        self.in_flight: dict[Id, Exchange | None] = {}
        self.running: set[Exchange] = set()  # operations that are generators, except tasks
        self.client_requests: dict[Id, tuple[Exchange, str, Question]] = {}  # by the server's id; with the key
        self.listening: dict[Id, tuple[Revision, JsonObject]] = {}  # subscriptions of each stream, by request id
        self.next_id = 1
        self.references: Iterator[str] = map(str, count(1))

    @property
    def spec(self) -> Spec:
        """The current spec. A running request keeps the spec that it began with (`Exchange.spec`)."""
        return self.snapshot.spec

    @property
    def principal(self) -> str:
        """The principal that owns the requests; "" for anonymous requests."""
        return self.caller.principal

    def permits(self, kind: str, name: str) -> bool:
        """Return whether the caller may use a definition, see `caller.Permissions`."""
        permissions = self.caller.permissions
        return permissions is None or permissions.permits(kind, name)

    def permits_some(self, uri_template: str, values: Mapping[str, str] | None = None) -> bool:
        """Return whether the caller may use a resource of ``uri_template``. ``values``: those of some variables."""
        permissions = self.caller.permissions
        return permissions is None or permissions.permits_some(uri_template, values or {})

    @property
    def revision(self) -> Revision:
        """The negotiated revision; before that, the preferred one."""
        return self.negotiated or negotiation.preferred(self.spec)

    def end(self) -> None:
        """Enter the state after the end of input."""
        events = self.spec["lifecycles"][self.revision["lifecycle"]].get("events", {})
        self.state = events.get("end_of_input", self.state)

    def reload(self, snapshot: Snapshot, tasks: Tasks | None) -> None:
        """Serve ``snapshot`` from the next message on. It must have the negotiated revision and current state."""
        was_new = self.negotiated is None and self.state == self._start()
        self.snapshot, self.tasks = snapshot, tasks
        self.budget.limit = self.spec["server"]["limits"]["session_bytes"]
        if self.negotiated is not None:
            self.negotiated = self.spec["revisions"][self.negotiated["revision"]]
        elif was_new:
            self.state = self._start()

    def is_in_flight(self, request_id: Id) -> bool:
        """Return whether a request with this id has no response yet."""
        return request_id in self.in_flight or request_id in self.listening

    def reference(self) -> str:
        """Return a new reference, which an error response and its log lines share."""
        return next(self.references)

    def _start(self) -> str:
        return self.spec["lifecycles"][self.revision["lifecycle"]]["start"]
