"""Whatever passes a recorder is in its file, as a transcript."""

import json
import os

import pytest

from tmkb.conformance import journal, matchers, recording, transcript
from tmkb.conformance.redaction import Redactor
from tmkb.errors import DocumentError

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["$any", "yes", "2025-11-25", "a: b", "# c", "- d", "\x85\u2028\ufeff", "x\ny\n", " z", "🙂", "\t"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["$any", "$ref", "<<", "yes"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.fixture
def start(tmp_path):
    """A new recording."""

    def new(name="one.yaml"):
        path = recording.create(str(tmp_path / name))
        return recording.Recording(path, Redactor({}), {"over": "stdio", "command": "server"}, "a server")

    return new


def read(path):
    """The turns of a file, as what was sent and what came."""
    resolved = transcript.read(path).turns("2025-11-25")
    return [(turn.line, [matchers.bind(each, {}) for each in turn.expect]) for turn in resolved]


def line(value):
    return json.dumps(value).encode()


@hypothesis.given(st.lists(st.tuples(VALUES, st.lists(VALUES, max_size=3)), min_size=1, max_size=4))
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_every_message_is_read_back_as_it_was(start, turns):
    recorded = start()
    for sent, received in turns:
        recorded.add_client(line({"method": "x", "params": sent}))
        for value in received:
            recorded.add_server(line({"v": value}))
    expected = [({"method": "x", "params": sent}, [{"v": each} for each in received]) for sent, received in turns]

    for is_finished in (False, True):
        if is_finished:
            recorded.finish()
        assert [(json.loads(sent), received) for sent, received in read(recorded.path)] == expected
    os.unlink(recorded.path)


@hypothesis.given(st.lists(st.tuples(st.booleans(), st.binary(max_size=30)), min_size=1, max_size=5))
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_every_line_is_a_transcript(start, lines):
    recorded = start()
    for of_client, data in lines:
        (recorded.add_client if of_client else recorded.add_server)(data.replace(b"\n", b""))
        transcript.read(recorded.path)
    recorded.finish()
    transcript.read(recorded.path)
    os.unlink(recorded.path)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": "\\ud800"}', "[" * 70 + "]" * 70, '{"a": NaN}', '{"a": 1e999}', "[1", '"text"', '{"%s": 1}' % ("k" * 2000)],
    ids=["repeated", "surrogate", "deep", "nan", "infinite", "incomplete", "string", "long-key"],
)  # fmt: skip
def test_what_is_no_ordinary_message_is_recorded_as_text(start, text):
    recorded = start()
    recorded.add_client(text.encode())
    recorded.add_server(text.encode())
    recorded.finish()

    assert [(each["send_text"], each["expect"]) for each in transcript.read(recorded.path).value["exchanges"]] == [
        (text, ["text" if text == '"text"' else text])
    ]


@pytest.mark.parametrize("value", [42, "text", None, True])
def test_a_line_of_the_server_that_is_another_json_value(start, value):
    recorded = start()
    recorded.add_server(line(value))
    recorded.add_client(line({"method": "x"}))
    recorded.finish()

    assert read(recorded.path) == [(b'{"method":"x"}', [value])]
    assert recorded.stray == 1


def test_frames_become_lines(start):
    recorder = recording.Recorder(lambda number: start(f"{number}.yaml"), Redactor({}))
    recorder.record(
        [
            (0, journal.CLIENT, b'{"a"'),
            (0, journal.SERVER, b'{"b": 2}\n{"c"'),
            (0, journal.CLIENT, b': 1}\n{"d": 1}'),
            (1, journal.CLIENT_MESSAGE, b'{"e":\n1}'),
            (0, journal.SERVER, b": 3}\n"),
        ]
    )

    assert read(recorder.recordings[0].path) == [(b'{"a":1}', [{"b": 2}, {"c": 3}]), (b'{"d":1}', [])]
    assert read(recorder.recordings[1].path) == [(b'{"e":1}', [])]


def conversation(*messages):
    """The ids of what came in each turn after settling; messages of the client have `>`."""
    turns = []
    for side, message in messages:
        if side == ">":
            turns.append(recording.Turn({"send": message}))
        else:
            turns[-1].expect.append(message)
    return [[each.get("id", "note") for each in turn.expect] for turn in recording.group_by_request(turns)]


REQUESTS = [(">", {"id": id_, "method": "a"}) for id_ in (1, "1", 2)]


def test_responses_move_to_their_requests():
    assert conversation(*REQUESTS, *(("<", {"id": id_, "result": {}}) for id_ in (2, "1", 1, 9))) == [
        [1],
        ["1"],
        [2, 9],
    ]


@pytest.mark.parametrize(
    "between", [{"id": "q", "result": {}}, {"method": "notifications/cancelled", "params": {"requestId": 1}}]
)
def test_a_response_stays_behind_what_it_may_need(between):
    assert conversation(REQUESTS[0], (">", between), ("<", {"id": 1, "result": {}})) == [[], [1]]


def test_names_of_files_get_numbers(tmp_path):
    paths = [recording.create(str(tmp_path / "a.transcript.yaml")) for _ in range(3)]

    assert [os.path.basename(path) for path in paths] == [f"a{n}.transcript.yaml" for n in ("", "-2", "-3")]


def test_the_server_and_the_revision_are_those_of_the_conversation(start):
    recorded = start()
    recorded.add_client(line({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}))
    assert transcript.read(recorded.path).revisions == ["2025-11-25"]
    recorded.add_server(line({"id": 1, "result": {"protocolVersion": "2024-11-05", "serverInfo": {"name": "mine"}}}))
    recorded.finish()
    value = transcript.read(recorded.path).value

    assert (value["server"], value["revisions"], value["title"]) == ("mine", ["2024-11-05"], "A conversation with mine")


def test_an_incomplete_last_line_is_left_out(start):
    recorded = start()
    recorded.add_client(line({"id": 1, "method": "a"}))
    with open(recorded.path, "ab") as file:
        file.write(b'    expect:\n      - {"id": 1, "resu')

    assert transcript.read(recorded.path).is_cut_off
    assert read(recorded.path) == [(b'{"id":1,"method":"a"}', [])]


def test_an_error_in_an_earlier_line_is_reported(start):
    recorded = start()
    recorded.add_client(line({"id": 1, "method": "a"}))
    with open(recorded.path, "ab") as file:
        file.write(b"  nonsense\n  - {}")

    with pytest.raises(DocumentError):
        transcript.read(recorded.path)


def test_the_folder_of_a_recording_is_created(tmp_path):
    path = tmp_path / "recordings" / "a.transcript.yaml"

    assert recording.create(str(path)) == str(path) and path.exists()
    with pytest.raises(IsADirectoryError):
        recording.create(str(tmp_path))


def test_a_journal_without_fork(monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    recorded = []
    opened = journal.start(lambda frames: recorded.extend(frames) or 3)
    opened.put(0, journal.CLIENT, b"one")
    opened.put(1, journal.SERVER, b"")

    assert opened.close() == 3
    assert recorded == [(0, journal.CLIENT, b"one"), (1, journal.SERVER, b"")]
