"""Types of the checked schemas, which the engine uses as plain JSON values.

They are TypedDicts, so a cache file can hold them, and serving need not import `dataclasses`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from tmkb.schema.values import JsonObject


class ErrorTemplate(TypedDict):
    """An error message for a peer."""

    surface: Literal["protocol", "tool", "params"]
    message: str
    code: NotRequired[int | str]
    status: NotRequired[int]
    keyword: NotRequired[str]
    fields: NotRequired[list[str]]
    data: NotRequired[list[str] | JsonObject]


class LogLine(TypedDict):
    """A log message."""

    level: Literal["debug", "info", "warning", "error"]
    message: str
    fields: NotRequired[list[str]]


class Reference(TypedDict):
    """The definitions a completion can refer to."""

    definitions: Literal["prompts", "resources"]
    named_by: str


class Obedience(TypedDict):
    """The param of a request with the schema of a part of its result, and when that part is required."""

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
        "result_shape": NotRequired[str],
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
    """The envelope of a message under a revision."""

    batch: bool
    unread_id: Literal["null", "absent"]


class Logging(TypedDict):
    """Levels of log messages to the client, lowest first, and the default level."""

    levels: list[str]
    unset: str


class ClientCapability(TypedDict):
    """Rules for a client capability."""

    when_empty: NotRequired[str]


class Shape(TypedDict):
    """The fields of an object of a revision, and how content that the revision does not know is replaced."""

    fields: NotRequired[dict[str, Literal[True] | str]]
    always: NotRequired[JsonObject]
    each: NotRequired[str]
    types: NotRequired[dict[str, JsonObject]]
    otherwise: NotRequired[dict[str, str]]
    primitives: NotRequired[list[str]]
    defaults: NotRequired[list[str]]
    titles: NotRequired[Literal["enumNames", "oneOf"]]


class RequestMetadata(TypedDict):
    """The keys of `_meta` with the revision of a request, the client's capabilities and its log level."""

    revision: str
    capabilities: str
    log_level: str


class Http(TypedDict):
    """Headers that name a session or repeat parts of the body, and how streams begin."""

    session: NotRequired[str]
    version: NotRequired[str]
    method: NotRequired[str]
    name: NotRequired[str]
    params: NotRequired[str]
    marked: NotRequired[str]
    resumes: NotRequired[bool]
    primes: NotRequired[bool]


class Revision(TypedDict):
    """One dated version of the protocol; ``errors`` is the resolved table."""

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
    """How a connection in this state handles each method."""

    accepts: NotRequired[dict[str, str]]
    refuses: NotRequired[dict[str, str]]
    otherwise: NotRequired[str]


class Lifecycle(TypedDict):
    """The states of a connection."""

    start: str
    states: dict[str, State]
    events: NotRequired[dict[str, str]]


class Limits(TypedDict):
    """Limits on the resources that a peer can use."""

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
    token_bytes: int
    keys_bytes: int
    keys_seconds: float
    keys_retry_seconds: float
    keys_timeout_seconds: float
    principal_rate: float
    principal_burst: int
    principal_requests: int
    principal_byte_rate: float
    principal_byte_burst: int
    failure_rate: float
    failure_burst: int
    busy_seconds: int
    linger_seconds: float


class Server(TypedDict):
    """Identity, revisions and capabilities of a server."""

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
    result_meta: NotRequired[JsonObject]  # in `_meta` of each answer; set by the server, not by its YAML


class Definition(TypedDict):
    """Common fields of tools, prompts, resources and completions: a name, and the operation that runs."""

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
    """Whether and when a call becomes a task."""

    support: Literal["optional", "required"]
    begins: NotRequired[Literal["at_start", "on_detach"]]


class Tool(Definition):
    """A tool: its listing, its arguments, and the operation that runs."""

    input: JsonObject
    output: NotRequired[JsonObject]
    annotations: NotRequired[JsonObject]
    task: NotRequired[TaskSupport]
    coerce: NotRequired[dict[str, str]]
    errors: NotRequired[dict[str, str]]
    log: LogLine


class Completion(TypedDict):
    """The values of an argument, by the value of another argument."""

    by: str
    values: dict[str, list[str]]


class Argument(TypedDict):
    """An argument of a prompt."""

    title: NotRequired[str]
    description: NotRequired[str]
    required: NotRequired[bool]
    complete: NotRequired[list[str] | Completion | str]


class Prompt(Definition):
    """A prompt: its listing, and the operation that creates its messages."""

    arguments: NotRequired[dict[str, Argument]]


class Resource(Definition):
    """A resource or a resource template."""

    uri: NotRequired[str]
    uriTemplate: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]
    annotations: NotRequired[JsonObject]
    complete: NotRequired[dict[str, list[str] | Completion | str]]
    entries: NotRequired[str | list[JsonObject]]
    cache: NotRequired[JsonObject]


class Negotiation(TypedDict):
    """A summary of all offered revisions, so that a session need not read each of them."""

    preferred: str
    stateless: list[str]  # names of the stateless revisions
    version_params: dict[str, str]  # method → the param with the requested revision


class Spec(TypedDict):
    """Everything that one server serves: its definitions, revisions and lifecycles."""

    server: Server
    tools: dict[str, Tool]
    prompts: dict[str, Prompt]
    resources: dict[str, Resource]
    revisions: Mapping[str, Revision]
    negotiation: Negotiation
    lifecycles: dict[str, Lifecycle]
    types: dict[str, list[str]]


def negotiation(names: Sequence[str], revisions: Mapping[str, Revision]) -> Negotiation:
    """Summarize the revisions ``names``, in the order in which the server offers them.

    ``preferred`` is the first revision with a handshake, else the first of all.
    """
    stateless = [name for name in names if "request_metadata" in revisions[name]]
    params: dict[str, str] = {}
    for name in names:
        for method, rules in revisions[name]["methods"].items():
            if "negotiates" in rules:
                params.setdefault(method, rules["negotiates"])
    preferred = next((name for name in names if name not in stateless), names[0])
    return {"preferred": preferred, "stateless": stateless, "version_params": params}
