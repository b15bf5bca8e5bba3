"""Problems in schemas: each has a position and a remedy."""

import sys
from typing import ClassVar

import pytest

from tests.support.tiers import sample
from tmkb import Provider
from tmkb.providers import registry
from tmkb.schema import load, metaschema, problems, reader
from tmkb.server import sources

ERRORS = "kind: errors\nextends: packaged\nerrors:\n"
TOOL = "kind: tool\nextends: packaged\n"


def test_unknown_key(complaints):
    assert complaints(errors=ERRORS + "  unknown_tool: {mesage: x}\n") == [
        "errors.yaml:4:18: Unknown key 'mesage' in errors.unknown_tool. Did you mean 'message'?"
    ]


def test_missing_key_in_a_new_entry(complaints):
    assert complaints(errors=ERRORS + "  made_up: {surface: protocol, code: 1}\n") == [
        "errors.yaml:4:3: Key 'message' is missing in errors.made_up."
    ]


def test_wrong_type(complaints):
    assert complaints(errors=ERRORS + "  unknown_tool: {code: minus}\n") == [
        "errors.yaml:4:24: errors.unknown_tool.code must be an integer, not a string."
    ]


def test_value_outside_an_enum(complaints):
    assert complaints(errors=ERRORS + "  unknown_tool: {surface: protocoll}\n") == [
        "errors.yaml:4:27: errors.unknown_tool.surface cannot be 'protocoll'. Did you mean 'protocol'?"
    ]


def test_unknown_keyword_of_an_error(complaints):
    entry = '  too_small: {surface: tool, keyword: minimun, fields: [field], message: "{field} is too small"}\n'

    assert complaints(errors=ERRORS + entry) == [
        "errors.yaml:4:39: errors.too_small.keyword cannot be 'minimun'. Did you mean 'minimum'?"
    ]


def test_two_errors_for_one_keyword(complaints):
    entry = '  too_long: {surface: tool, keyword: maxLength, fields: [field], message: "{field} is too long"}\n'

    assert complaints(errors=ERRORS + entry) == [
        "errors.yaml:4:38: 'argument_too_long' already reports violations of maxLength with this surface. "
        "Override that entry."
    ]


def test_fields_of_an_error_for_a_keyword(complaints):
    entry = '  too_small: {surface: tool, keyword: minimum, fields: [feld], message: "Too small"}\n'

    assert complaints(errors=ERRORS + entry) == [
        "errors.yaml:4:57: The field 'feld' does not exist here. Did you mean 'field'?"
    ]


def test_an_unused_field_of_a_general_error(complaints):
    entry = "  made_up: {surface: protocol, code: 1, fields: [room], message: There is no room}\n"

    assert complaints(errors=ERRORS + entry) == [
        "errors.yaml:4:50: The field 'room' is used neither in `message` nor in `data`. Use it, or remove it."
    ]


def test_one_keyword_on_two_surfaces(complaints):
    entry = '  param_too_long: {surface: params, keyword: maxLength, fields: [field], message: "{field} is too long"}\n'

    assert complaints(errors=ERRORS + entry) == []


def test_unknown_kind(complaints):
    assert complaints(errors="kind: error\nextends: packaged\n") == [
        "errors.yaml:1:7: kind cannot be 'error'. Did you mean 'errors'?"
    ]


def test_unknown_field_of_a_message(complaints):
    assert complaints(errors=ERRORS + '  unknown_tool: {message: "No {toll}"}\n') == [
        "errors.yaml:4:27: The field 'toll' does not exist here. Did you mean 'tool'?"
    ]


def test_stray_brace(complaints):
    assert complaints(errors=ERRORS + '  unknown_tool: {message: "No {tool.name}"}\n') == [
        "errors.yaml:4:27: '{tool.name}' is not a placeholder such as {name}. Write {{ or }} for a brace."
    ]


def test_fields_of_packaged_messages_cannot_change(complaints):
    assert complaints(errors=ERRORS + "  unknown_tool: {fields: [tool, name]}\n") == [
        "errors.yaml:4:26: The fields of 'unknown_tool' are tool, not tool, name. Do not override `fields`."
    ]


def test_a_replaced_table_must_be_complete(complaints):
    messages = complaints(errors="kind: errors\nerrors: {parse_error: {surface: protocol, code: -32700, message: x}}\n")

    (sentence,) = messages  # and not what follows from it in every file that names an error
    assert sentence.startswith("errors.yaml:2:1: This file replaces the packaged file but lacks ")
    assert sentence.endswith(" entries that the code uses, such as invalid_request. Add `extends: packaged`.")


def test_a_replaced_table_of_a_server_must_have_referenced_errors(complaints):
    (sentence,) = complaints(servers__tmkb__errors="kind: errors\nerrors: {oops: {surface: tool, message: x}}\n")

    assert sentence == (
        "servers/tmkb/errors.yaml:2:1: This file replaces the packaged file but lacks 3 entries that the code uses, "
        "such as unsupported_language. Add `extends: packaged`."
    )


@pytest.mark.parametrize(
    ("place", "name"), [("errors", "unknown_tool"), ("servers/tmkb/errors", "query_failed"), ("log", "called")]
)
def test_a_required_entry_cannot_be_removed(complaints, place, name):
    key = "lines" if place == "log" else "errors"
    text = f"kind: {'log' if place == 'log' else 'errors'}\nextends: packaged\n{key}:\n  {name}: null\n"

    assert complaints(**{place: text}) == [
        f"{place}.yaml:4:3: '{name}' cannot be removed: the code uses it. Delete this line."
    ]


def test_an_unreadable_folder(complaints, monkeypatch):
    def closed(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("os.scandir", closed)

    assert any("Cannot list" in line and line.endswith("Permission denied.") for line in complaints(errors=ERRORS))


def test_null_for_a_missing_key(complaints):
    assert complaints(errors=ERRORS + "  unknown_tol: null\n") == [
        "errors.yaml:4:3: There is no 'unknown_tol' to remove here. Did you mean 'unknown_tool'?"
    ]


def test_unknown_handler(complaints):
    messages = complaints(
        **{"protocol__2025-11-25.yaml": "kind: revision\nextends: packaged\nmethods: {ping: {handler: pong}}\n"}
    )

    assert messages == ["protocol/2025-11-25.yaml:3:27: There is no handler 'pong'. Did you mean 'ping'?"]


def test_unknown_error_id(complaints):
    messages = complaints(
        lifecycle__handshake="kind: lifecycle\nextends: packaged\nstates: {initializing: {otherwise: not_initialised}}\n"
    )

    assert messages == [
        "lifecycle/handshake.yaml:3:36: There is no error 'not_initialised'. Did you mean 'server_not_initialized'?"
    ]


def test_unknown_state(complaints):
    messages = complaints(
        lifecycle__handshake="kind: lifecycle\nextends: packaged\nstates: {initializing: {accepts: {ping: intializing}}}\n"
    )

    assert messages == ["lifecycle/handshake.yaml:3:41: There is no state 'intializing'. Did you mean 'initializing'?"]


def test_unreachable_state(complaints):
    messages = complaints(
        lifecycle__handshake="kind: lifecycle\nextends: packaged\nstates: {resting: {otherwise: shut_down}}\n"
    )

    assert messages == [
        "lifecycle/handshake.yaml:3:10: No message or event leads to the state 'resting'. Remove it, or add a transition to it."
    ]


def test_state_without_otherwise(complaints):
    messages = complaints(
        lifecycle__handshake="kind: lifecycle\nextends: packaged\nstates: {initializing: {otherwise: null}}\n"
    )

    assert messages == [
        "lifecycle/handshake.yaml:3:10: The state 'initializing' does not define what happens to other methods."
        ' Add `otherwise` with an error, or accept "*".'
    ]


def test_a_state_that_accepts_nothing(complaints):
    lifecycle = "kind: lifecycle\nextends: packaged\nstates: {initializing: {accepts: null, otherwise: null}}\n"

    assert [line.partition(" does ")[0] for line in complaints(lifecycle__handshake=lifecycle)] == [
        "lifecycle/handshake.yaml:3:10: The state 'initializing'"
    ]


def test_a_server_that_amends_an_unknown_revision(complaints):
    server = 'kind: server\nextends: packaged\nrevisions: ["2025-11-25", "2025-11-26"]\n'

    assert complaints(servers__sysmcp__server=server) == [
        "servers/sysmcp/server.yaml:3:27: There is no revision '2025-11-26'. Did you mean '2025-11-25'?"
    ]


def test_unknown_lifecycle(complaints):
    messages = complaints(**{"protocol__2025-11-25.yaml": "kind: revision\nextends: packaged\nlifecycle: handshak\n"})

    assert messages == ["protocol/2025-11-25.yaml:3:12: There is no lifecycle 'handshak'. Did you mean 'handshake'?"]


def test_unknown_parent(complaints):
    messages = complaints(
        **{"protocol__2099-01-01.yaml": 'kind: revision\nextends: "2025-11-26"\nrevision: "2099-01-01"\n'}
    )

    assert messages == ["protocol/2099-01-01.yaml:2:10: There is no parent '2025-11-26'. Did you mean '2025-11-25'?"]


def test_circular_extends(complaints):
    messages = complaints(
        **{
            "protocol__2099-01-01.yaml": 'kind: revision\nextends: "2099-01-02"\n',
            "protocol__2099-01-02.yaml": 'kind: revision\nextends: "2099-01-01"\n',
        }
    )

    assert messages == [
        "protocol/2099-01-01.yaml:2:10: `extends` is circular: 2099-01-02 → 2099-01-01 → 2099-01-02.",
        "protocol/2099-01-02.yaml:2:10: `extends` is circular: 2099-01-01 → 2099-01-02 → 2099-01-01.",
    ]


def test_revision_differs_from_its_file_name(complaints):
    messages = complaints(
        **{"protocol__2099-01-01.yaml": 'kind: revision\nextends: "2025-11-25"\nrevision: "2099-01-02"\n'}
    )

    assert messages == [
        "protocol/2099-01-01.yaml:3:11: The file is named 2099-01-01, but its revision is '2099-01-02'. Rename one of them."
    ]


def test_unknown_revision_of_a_server(complaints):
    messages = complaints(servers__tmkb__server='kind: server\nextends: packaged\nrevisions: ["2025-11-24"]\n')

    assert messages == ["servers/tmkb/server.yaml:3:13: There is no revision '2025-11-24'. Did you mean '2025-11-25'?"]


def test_unknown_operation(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_query=TOOL + "provider: knowledge.qury\n")

    assert messages == [
        "servers/tmkb/tools/tmkb_query.yaml:3:11: There is no operation 'knowledge.qury'. Did you mean 'knowledge.query'?"
    ]


def test_unknown_coercion_and_argument(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_query=TOOL + "coerce: {context: trim}\n")
    other = complaints(servers__tmkb__tools__tmkb_query=TOOL + "coerce: {contxt: strip}\n")

    assert messages == ["servers/tmkb/tools/tmkb_query.yaml:3:19: There is no coercion 'trim'. Did you mean 'strip'?"]
    assert other == ["servers/tmkb/tools/tmkb_query.yaml:3:10: There is no argument 'contxt'. Did you mean 'context'?"]


def test_input_is_not_a_json_schema(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_query=TOOL + "input: {properties: {context: {type: text}}}\n")

    assert len(messages) == 1
    assert messages[0].startswith(
        "servers/tmkb/tools/tmkb_query.yaml:3:38: input.properties.context.type cannot be 'text'."
    )


def test_error_of_the_wrong_surface(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_query=TOOL + "errors: {language.enum: parse_error}\n")

    assert messages == [
        "servers/tmkb/tools/tmkb_query.yaml:3:25: The error 'parse_error' has `surface: protocol`; this place needs `surface: tool`."
        " Use another error."
    ]


def test_log_line_with_an_unknown_fact(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_query=TOOL + "log: {fields: [patterns], message: '{patterns}'}\n")

    assert messages == [
        "servers/tmkb/tools/tmkb_query.yaml:3:16: The field 'patterns' does not exist here. Did you mean 'pattern_count'?"
    ]


def test_log_message_with_a_fact_that_is_no_field(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_query=TOOL + "log: {fields: [pattern_count], message: '{tool}'}\n")

    assert messages == [
        "servers/tmkb/tools/tmkb_query.yaml:3:41: The field 'tool' does not exist here. Fields: pattern_count."
    ]


def test_script_tool_without_an_answer(complaints):
    messages = complaints(
        servers__tmkb__tools__greet="""
        kind: tool
        name: greet
        description: Greets.
        provider: script.answer
        input: {type: object}
        """
    )

    assert messages == ["servers/tmkb/tools/greet.yaml:2:1: Key 'answer' is missing in the file."]


def test_invalid_setting_of_a_provider(complaints):
    messages = complaints(
        servers__tmkb__server="kind: server\nextends: packaged\nproviders: {knowledge: {agent: {token: 5}}}\n"
    )

    assert messages == [
        "servers/tmkb/server.yaml:3:33: Unknown key 'token' in providers.knowledge.agent. Did you mean 'tokens'?"
    ]


def test_misplaced_file(complaints):
    assert complaints(error="kind: errors\n") == [
        "error.yaml:1:1: error is not a path for a schema file. Did you mean errors?"
    ]
    assert complaints(stray__x="kind: errors\n") == [
        "error.yaml:1:1: error is not a path for a schema file. Did you mean errors?",
        "stray/x.yaml:1:1: stray/x is not a path for a schema file. Allowed paths: errors, limits, log, protocol/*, lifecycle/*, "
        "servers/*/server, servers/*/errors, servers/*/tools/*, servers/*/prompts/*, servers/*/resources/*, servers/*/services/*.",
    ]


def test_nothing_to_extend(complaints):
    messages = complaints(servers__tmkb__tools__tmkb_qery="kind: tool\nextends: packaged\n")

    assert messages == [
        "servers/tmkb/tools/tmkb_qery.yaml:2:10: `extends: packaged`, but no packaged file has the path "
        "servers/tmkb/tools/tmkb_qery. Did you mean servers/tmkb/tools/tmkb_query?"
    ]


def test_problems_of_all_files_are_reported(complaints):
    messages = complaints(
        errors=ERRORS + "  a: {}\n  b: {}\n", log="kind: log\nextends: packaged\nlines: {ready: {level: loud}}\n"
    )

    assert len(messages) == 5


def test_syntax_errors_of_all_files_are_reported(complaints):
    messages = complaints(errors="kind: on\n", log="kind: [log\n")

    assert [line.split(":")[0] for line in messages] == ["errors.yaml", "log.yaml"]


def test_missing_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    found = load.read(["no/such/folder", "file"], sources.names())

    assert [problems.line(p) for p in found.problems] == [
        "file: This is a file, not a folder of schemas. Use the folder that contains errors.yaml or servers/.",
        "no/such/folder: Folder no/such/folder does not exist. Check `--schemas` and TMKB_SCHEMAS.",
    ]


def test_an_expression_needs_its_extra(monkeypatch, complaints):
    monkeypatch.setitem(sys.modules, "re2", None)
    tool = """\
        kind: tool
        name: hello
        description: Greets.
        provider: script.answer
        answer: "Hello!"
        input: {type: object, properties: {who: {pattern: "^only here$"}}}
    """

    (line,) = complaints(servers__tmkb__tools__hello=tool)
    place = "servers/tmkb/tools/hello.yaml:6:51"
    assert line.startswith(f"{place}: This needs the module re2, which is not installed. Install ")
    assert "regex" in line  # the command depends on how tmkb was installed


@pytest.mark.parametrize(
    ("place", "file", "old", "new"),
    sample(
        [
            ("protocol__2025-11-25", "extends: packaged\nsender: {}\n", "sender", "request_metadata"),
            ("protocol__2025-11-25", "extends: packaged\nasks: in_result\n", "asks", "client_requests"),
            ("protocol__2025-11-25", "extends: packaged\nmethods: {ping: {says: log}}\n", "says", "role"),
            ("protocol__2025-11-25", "extends: packaged\nmethods: {ping: {sends: log}}\n", "sends", "params_shape"),
            ("protocol__2025-11-25", "extends: packaged\nmethods: {ping: {most: 1}}\n", "most", "max_values"),
            (
                "servers__sysmcp__server",
                "extends: packaged\nproviders: {eventlog: {limits: {message_bytes: 9}}}\n",
                "message_bytes",
                "event_text_bytes",
            ),
            ("servers__tmkb__tools__tmkb_query", "extends: packaged\nread: {}\n", "read", "coerce"),
            ("servers__tmkb__tools__tmkb_query", "extends: packaged\nkeep: 1\n", "keep", "cache_results"),
            ("servers__tmkb__tools__tmkb_query", "extends: packaged\nfailure: x\n", "failure", "on_exception"),
        ],
        3,
    ),
)
def test_an_old_key_is_refused_with_its_new_name(complaints, place, file, old, new):
    kind = "revision" if place.startswith("protocol") else "server" if place.endswith("server") else "tool"
    lines = complaints(**{place: f"kind: {kind}\n{file}"})

    assert [
        line for line in lines if f"Key '{old}' in " in line and line.endswith(f"is now called '{new}'. Rename it.")
    ]


def test_value_of_no_permitted_type(complaints):
    tool = "kind: tool\nname: rules\ndescription: The rules.\nprovider: script.answer\ninput: {type: object}\nanswer: [Ask.]\n"

    assert complaints(servers__tmkb__tools__rules=tool) == [
        "servers/tmkb/tools/rules.yaml:6:9: answer must be a string or a map, not a list."
    ]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (
            "resource",
            "uriTemplate: house://{room}\nanswer: '{room}'\ncomplete: {rom: [hall]}\n",
            "7:12: There is no variable 'rom'. Did you mean 'room'?",
        ),
        (
            "resource",
            "uriTemplate: house://{room}\nanswer: '{room}'\ncomplete: {room: {by: flor, values: {}}}\n",
            "7:23: There is no argument 'flor'. Known: room.",
        ),
        (
            "prompt",
            "arguments:\n  floor: {}\n  room: {complete: {by: flor, values: {}}}\nanswer: '{room}'\n",
            "7:25: There is no argument 'flor'. Did you mean 'floor'?",
        ),
    ],
)
def test_completion_of_an_unknown_name(complaints, kind, text, expected):
    head = f"kind: {kind}\nname: rooms\ndescription: The rooms.\nprovider: script.answer\n"
    server = f"kind: server\nextends: packaged\ncapabilities: {{{kind}s: {{}}}}\n"
    files = {"servers__tmkb__server": server, f"servers__tmkb__{kind}s__rooms": head + text}

    assert complaints(**files) == [f"servers/tmkb/{kind}s/rooms.yaml:{expected}"]


class House(Provider):
    """A provider without settings."""

    operations: ClassVar = {"ask": []}


@pytest.fixture
def installed(monkeypatch):
    """Install providers of other packages: one without settings, and one whose module is missing."""
    targets = {**registry.installed(), "house": f"{__name__}:House", "hotel": "missing_hotel:Hotel"}
    monkeypatch.setattr(registry, "installed", lambda: targets)


SERVER = "kind: server\nextends: packaged\nproviders:\n"
ASK = "kind: tool\nname: ask\ndescription: Asks.\ninput: {type: object}\nprovider: "


def test_settings_of_a_provider_without_any(complaints, installed):
    assert (
        complaints(servers__tmkb__server=SERVER + "  house: {}\n", servers__tmkb__tools__ask=ASK + "house.ask\n") == []
    )
    assert complaints(servers__tmkb__server=SERVER + "  house: {rooms: 5}\n") == [
        "servers/tmkb/server.yaml:4:11: The provider 'house' has no settings, and so no 'rooms'."
    ]


def test_a_provider_that_cannot_be_imported(complaints, installed):
    assert complaints(
        servers__tmkb__server=SERVER + "  hotel: {rooms: 5}\n", servers__tmkb__tools__ask=ASK + "hotel.ask\n"
    ) == [
        f"servers/tmkb/{place}: The provider 'hotel' cannot be imported: ModuleNotFoundError: "
        "No module named 'missing_hotel'. Reinstall or remove its package."
        for place in ("server.yaml:4:3", "tools/ask.yaml:5:11")
    ]


@pytest.fixture
def with_classes(overlay):
    """Return the problems of an overlay of the server `tmkb`, which may name classes of Python."""

    def check(**files):
        found = load.read([overlay(**files)], sources.names(), ["tmkb", "everything"], offer=registry.offer)
        return [problems.line(each).partition("/schemas/")[2] for each in found.problems]

    return check


def test_a_class_offers_its_operations_to_its_server_alone(with_classes):
    server = SERVER + f"  house: {{provider: '{__name__}:House'}}\n"
    ask = ASK + "house.ask\n"

    assert with_classes(servers__tmkb__server=server, servers__tmkb__tools__ask=ask) == []
    assert with_classes(servers__tmkb__server=server, servers__everything__tools__ask=ask) == [
        "servers/everything/tools/ask.yaml:5:11: There is no operation 'house.ask'. Known: script.answer, script.steps, "
        "eventlog.list_logs, eventlog.query, files.search, files.stat, hives.read, hives.write, knowledge.advise, "
        "knowledge.categories, knowledge.entries, …."
    ]


def test_a_class_that_cannot_be_imported(with_classes):
    server = SERVER + "  house: {provider: 'missing_house:House'}\n  script: {provider: 'json:loads'}\n"

    assert with_classes(servers__tmkb__server=server) == [
        "servers/tmkb/server.yaml:4:21: 'missing_house:House' cannot be used as a provider: ModuleNotFoundError: No module named 'missing_house'.",
        "servers/tmkb/server.yaml:5:22: 'json:loads' cannot be used as a provider: TypeError: json:loads is not a subclass of tmkb.Provider.",
    ]


@pytest.mark.parametrize(
    ("place", "key"), [("errors", "errors"), ("log", "lines"), ("servers__tmkb__errors", "errors")]
)
def test_a_needed_table_cannot_be_removed(complaints, place, key):
    kind = place.rpartition("_")[2]

    assert complaints(**{place: f"kind: {kind}\nextends: packaged\n{key}: null\n"}) == [
        f"{place.replace('__', '/')}.yaml:3:1: '{key}' cannot be removed: the code uses it. Delete this line."
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("starting: {message: 'On {port}'}", "3:27: The field 'port' does not exist here."),
        ("starting: {level: wraning}", "3:25: log.starting.level cannot be 'wraning'. Did you mean 'warning'?"),
        ("starting: {fields: [prot]}", "3:27: The field 'prot' does not exist here."),
    ],
)
def test_a_line_of_the_log_of_a_server(complaints, line, message):
    (found,) = complaints(servers__tmkb__server=f"kind: server\nextends: packaged\nlog: {{{line}}}\n")

    assert found.startswith(f"servers/tmkb/server.yaml:{message}")


def test_required_is_a_list_at_the_top_too(complaints):
    tool = ASK.replace("{type: object}", "{type: object, required: true}") + "script.answer\nanswer: Ask.\n"
    (found,) = complaints(servers__tmkb__tools__ask=tool)

    assert found.startswith("servers/tmkb/tools/ask.yaml:4:23: ") and "`required: [NAME]`" in found


def test_lines_of_the_log_of_a_server_cannot_be_removed(complaints):
    assert complaints(
        servers__tmkb__server="kind: server\nextends: packaged\nlog: {starting: null, no_folder: null}\n"
    ) == ["servers/tmkb/server.yaml:3:7: 'starting' cannot be removed: the code uses it. Delete this line."]


def test_the_name_of_a_text_file_has_no_nul(complaints):
    tool = ASK.replace("provider: ", 'answer: {$file: "a\\0b"}\nprovider: script.answer\n')

    assert complaints(servers__tmkb__tools__ask=tool) == [
        "servers/tmkb/tools/ask.yaml:5:17: Cannot read the file a\\u0000b: this is no path. "
        "Write its path from the folder of this YAML file."
    ]


@pytest.mark.parametrize(
    ("description", "more"), [("", ""), ("description: A text., ", ": A text"), ("description: a text, ", ": a text")]
)
def test_a_value_of_two_alternatives(tmp_path, description, more):
    """A meta-schema of another package can have alternatives that overlap."""
    schema = tmp_path / "settings.yaml"
    schema.write_text(f"properties: {{x: {{{description}oneOf: [{{type: string}}, {{minLength: 1}}]}}}}\n")
    doc = reader.parse("y: 1\nx: text\n", "a.yaml")

    assert [problems.line(each) for each in metaschema.check(doc, str(schema))] == [
        f"a.yaml:2:4: x is not valid: 'text' is valid under each of {{'minLength': 1}}, {{'type': 'string'}}{more}."
    ]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_formats_in_alternatives(tmp_path, keyword):
    """A meta-schema of another package can have a format in each alternative."""
    schema = tmp_path / "settings.yaml"
    schema.write_text(f"properties: {{x: {{{keyword}: [{{type: 'null'}}, {{type: string, format: folder}}]}}}}\n")

    assert metaschema.paths_in(str(schema), {"x": "a"}) == {("x",): "folder"}


@pytest.mark.parametrize(("count", "hint"), [(900, "Did you mean 'e7'?"), (1000, "Known: ")])
def test_a_name_is_suggested_from_at_most_a_thousand(complaints, count, hint):
    """The cost of suggestions is limited. The packaged table has about a hundred errors."""
    lines = "".join(f'  e{n}: {{surface: tool, message: "{n}"}}\n' for n in range(count))
    (line,) = complaints(
        errors=ERRORS + lines, servers__tmkb__tools__tmkb_query=TOOL + "errors: {language.enum: e7_}\n"
    )

    assert line.startswith(f"servers/tmkb/tools/tmkb_query.yaml:3:25: There is no error 'e7_'. {hint}")


def test_a_folder_named_like_a_file_of_schemas(overlay, tmp_path):
    folder = overlay()
    (tmp_path / "schemas" / "errors.yaml").mkdir()

    (problem,) = load.read([folder], sources.names()).problems
    sentence = "This is a folder, not a regular file. Put a regular file here, or rename it so that it is not read."

    assert problems.line(problem).endswith(f"errors.yaml: {sentence}")
