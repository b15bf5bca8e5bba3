"""The checked schemas as the engine reads them: plain JSON values, described here for the type checker.

They stay what a cache file can hold: `dataclasses` alone would cost more at start than reading them.
"""

from typing import Literal, NotRequired, TypedDict

from tmkb.values import JsonObject


class ErrorTemplate(TypedDict):
    """One sentence a peer can be told."""

    surface: Literal["protocol", "tool", "params"]
    message: str
    code: NotRequired[int]
    keyword: NotRequired[str]
    fields: NotRequired[list[str]]
    data: NotRequired[list[str]]


class LogLine(TypedDict):
    """One sentence of the log."""

    level: Literal["debug", "info", "warning", "error"]
    message: str
    fields: NotRequired[list[str]]


Method = TypedDict(
    "Method",
    {
        "from": Literal["client", "server", "both"],
        "kind": Literal["request", "notification"],
        "capability": NotRequired[str],
        "handler": NotRequired[str],
        "negotiates": NotRequired[str],
        "params": NotRequired[JsonObject],
        "invalid": NotRequired[str],
        "violations": NotRequired[dict[str, str]],
    },
)


class Message(TypedDict):
    """What the envelope looks like under a revision."""

    batch: bool
    unread_id: Literal["null", "absent"]


class Fields(TypedDict):
    """The fields an object has under a revision."""

    fields: dict[str, bool]


class Revision(TypedDict):
    """One dated version of the protocol, resolved, with the error table that holds for the server under it."""

    revision: str
    lifecycle: str
    message: Message
    methods: dict[str, Method]
    implementation: Fields
    tool: Fields
    errors: dict[str, ErrorTemplate]


class State(TypedDict):
    """What a connection does with a method while it is in this state."""

    accepts: NotRequired[dict[str, str]]
    refuses: NotRequired[dict[str, str]]
    otherwise: NotRequired[str]


class Lifecycle(TypedDict):
    """The states of a connection."""

    start: str
    states: dict[str, State]
    events: NotRequired[dict[str, str]]


class Limits(TypedDict):
    """Bounds on what a peer can make us hold."""

    message_bytes: int
    batch_messages: int
    backlog_bytes: int


class Server(TypedDict):
    """Identity, revisions and capabilities of one served definition."""

    name: str
    version: str
    title: NotRequired[str]
    description: NotRequired[str]
    websiteUrl: NotRequired[str]
    instructions: NotRequired[str]
    revisions: list[str]
    capabilities: JsonObject
    providers: NotRequired[dict[str, JsonObject]]
    limits: Limits
    log: dict[str, LogLine]


class Tool(TypedDict):
    """One tool: what is listed, how its arguments are read and judged, what runs."""

    name: str
    description: str
    input: JsonObject
    provider: NotRequired[str]
    answer: NotRequired[str | JsonObject]
    read: NotRequired[dict[str, str]]
    errors: NotRequired[dict[str, str]]
    failure: NotRequired[str]
    keep: NotRequired[int]
    log: LogLine


class Spec(TypedDict):
    """Everything one server is told: itself, its tools, and the revisions it offers with their lifecycles."""

    server: Server
    tools: dict[str, Tool]
    revisions: dict[str, Revision]
    lifecycles: dict[str, Lifecycle]
    types: dict[str, list[str]]
