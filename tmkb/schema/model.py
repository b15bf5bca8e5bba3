"""The checked schemas as the engine reads them: plain JSON values, described here for the type checker.

They stay what a cache file can hold: `dataclasses` alone would cost more at start than reading them.
"""

from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict

from tmkb.schema.values import JsonObject


class ErrorTemplate(TypedDict):
    """One sentence a peer can be told."""

    surface: Literal["protocol", "tool", "params"]
    message: str
    code: NotRequired[int | str]
    status: NotRequired[int]
    keyword: NotRequired[str]
    fields: NotRequired[list[str]]
    data: NotRequired[list[str] | JsonObject]


class LogLine(TypedDict):
    """One sentence of the log."""

    level: Literal["debug", "info", "warning", "error"]
    message: str
    fields: NotRequired[list[str]]


class Reference(TypedDict):
    """What a completion can refer to."""

    definitions: Literal["prompts", "resources"]
    named_by: str


class Obedience(TypedDict):
    """Which param of a request has the schema of a part of its result, and when that part has to be there."""

    schema: str
    when: JsonObject


Method = TypedDict(
    "Method",
    {
        "from": Literal["client", "server", "both"],
        "kind": Literal["request", "notification"],
        "capability": NotRequired[str],
        "handler": NotRequired[str],
        "named_by": NotRequired[str],
        "negotiates": NotRequired[str],
        "params": NotRequired[JsonObject],
        "invalid": NotRequired[str],
        "violations": NotRequired[dict[str, str]],
        "completes": NotRequired[dict[str, Reference]],
        "max_values": NotRequired[int],
        "role": NotRequired[str],
        "params_shape": NotRequired[str],
        "subscribed": NotRequired[str],
        "listened": NotRequired[str],
        "lists": NotRequired[list[str]],
        "extension": NotRequired[str],
        "needs": NotRequired[dict[str, dict[str, Literal["present"] | list[str | None]]]],
        "result": NotRequired[JsonObject],
        "obeys": NotRequired[dict[str, Obedience]],
    },
)


class Message(TypedDict):
    """What the envelope looks like under a revision."""

    batch: bool
    unread_id: Literal["null", "absent"]


class Logging(TypedDict):
    """Severities of log messages to the client, least first, and the one before a client has set one."""

    levels: list[str]
    unset: str


class ClientCapability(TypedDict):
    """What is to be known of a capability of clients."""

    when_empty: NotRequired[str]


class Shape(TypedDict):
    """The shape of a kind of object under one revision."""

    fields: NotRequired[dict[str, Literal[True] | str]]
    always: NotRequired[JsonObject]
    each: NotRequired[str]
    types: NotRequired[dict[str, JsonObject]]
    otherwise: NotRequired[dict[str, str]]
    primitives: NotRequired[list[str]]
    defaults: NotRequired[list[str]]
    titles: NotRequired[Literal["enumNames", "oneOf"]]


class RequestMetadata(TypedDict):
    """The keys of `_meta` under which a request names its revision and what the client can and wants."""

    revision: str
    capabilities: str
    log_level: str


class Http(TypedDict):
    """What HTTP adds: the headers that name a session, and that repeat parts of the body; how streams begin."""

    session: NotRequired[str]
    version: NotRequired[str]
    method: NotRequired[str]
    name: NotRequired[str]
    params: NotRequired[str]
    marked: NotRequired[str]
    resumes: NotRequired[bool]
    primes: NotRequired[bool]


class Revision(TypedDict):
    """What a server does under one dated version of the protocol; ``errors`` is the whole table."""

    revision: str
    lifecycle: str
    request_metadata: NotRequired[RequestMetadata]
    identity: NotRequired[str]
    subscription: NotRequired[str]
    tasks: NotRequired[str]
    client_requests: Literal["by_request", "in_result"]
    message: Message
    http: Http
    meta: JsonObject
    logging: Logging
    client: NotRequired[dict[str, ClientCapability]]
    methods: dict[str, Method]
    objects: dict[str, Shape]
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
    batch_answer_bytes: int
    violations: int
    violations_counted: int
    backlog_bytes: int
    running: int
    subscriptions: int
    uri_bytes: int
    session_bytes: int
    principal_bytes: int
    answer_seconds: float
    tasks: int
    principal_tasks: int
    task_seconds: float
    poll_milliseconds: int
    page_size: NotRequired[int]
    sessions: int
    principal_sessions: int
    session_seconds: float
    streams: int
    principal_streams: int
    stream_bytes: int
    quiet_seconds: float
    retry_milliseconds: int
    head_bytes: int
    request_seconds: float
    connections: int
    principal_connections: int
    linger_seconds: float


class Server(TypedDict):
    """Identity, revisions and capabilities of one served definition."""

    name: str
    version: str
    title: NotRequired[str]
    description: NotRequired[str]
    websiteUrl: NotRequired[str]
    icons: NotRequired[list[JsonObject]]
    instructions: NotRequired[str]
    revisions: list[str]
    capabilities: JsonObject
    cache: NotRequired[JsonObject]
    providers: NotRequired[dict[str, JsonObject]]
    limits: Limits
    log: dict[str, LogLine]
    results: NotRequired[Literal["plain", "envelope"]]


class Definition(TypedDict):
    """What tools, prompts, resources and completions have alike: a name, and the operation that does the work."""

    kind: Literal["tool", "prompt", "resource", "completion"]
    name: str
    provider: str
    title: NotRequired[str]
    description: NotRequired[str]
    icons: NotRequired[list[JsonObject]]
    meta: NotRequired[JsonObject]
    answer: NotRequired[str | JsonObject]
    steps: NotRequired[list[JsonObject]]
    on_exception: NotRequired[str]
    cache_results: NotRequired[int]


class TaskSupport(TypedDict):
    """How a call may go on after it was answered."""

    support: Literal["optional", "required"]
    begins: NotRequired[Literal["at_start", "when_told"]]


class Tool(Definition):
    """One tool: what is listed, how its arguments are read and judged, what runs."""

    input: JsonObject
    output: NotRequired[JsonObject]
    annotations: NotRequired[JsonObject]
    task: NotRequired[TaskSupport]
    coerce: NotRequired[dict[str, str]]
    errors: NotRequired[dict[str, str]]
    log: LogLine


class Completion(TypedDict):
    """The values of an argument, by the value of another one."""

    by: str
    values: dict[str, list[str]]


class Argument(TypedDict):
    """One argument of a prompt."""

    title: NotRequired[str]
    description: NotRequired[str]
    required: NotRequired[bool]
    complete: NotRequired[list[str] | Completion | str]


class Prompt(Definition):
    """One prompt: what is listed, and what makes its messages."""

    arguments: NotRequired[dict[str, Argument]]


class Resource(Definition):
    """One resource, or a template of many."""

    uri: NotRequired[str]
    uriTemplate: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]
    annotations: NotRequired[JsonObject]
    complete: NotRequired[dict[str, list[str] | Completion | str]]
    entries: NotRequired[str | list[JsonObject]]
    cache: NotRequired[JsonObject]


class Negotiation(TypedDict):
    """What negotiation has to know of all revisions on offer: see `tmkb.schema.negotiable`."""

    preferred: str
    stateless: list[str]  # the revisions whose requests describe themselves
    version_params: dict[str, str]  # method → the param by which it asks for a revision


class Spec(TypedDict):
    """Everything one server is told: itself, what it offers, and its revisions with their lifecycles."""

    server: Server
    tools: dict[str, Tool]
    prompts: dict[str, Prompt]
    resources: dict[str, Resource]
    revisions: Mapping[str, Revision]
    negotiation: Negotiation
    lifecycles: dict[str, Lifecycle]
    types: dict[str, list[str]]
