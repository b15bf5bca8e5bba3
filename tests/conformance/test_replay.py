"""The replay of a conversation on a target that answers from a list."""

import json

import pytest

from tmkb.conformance import replay, targets, transcript

HEAD = {
    "kind": "transcript",
    "title": "A made-up conversation",
    "server": "other",
    "revisions": ["2025-11-25"],
    "opening": "none",
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "call"}
NOTE = {"jsonrpc": "2.0", "method": "note"}


def answer(id_=1, **result):
    return {"jsonrpc": "2.0", "id": id_, "result": result}


class Scripted(targets.Target):
    """A target with the messages that arrive in each exchange; the last ones arrive at its end."""

    ordered = True
    timeout = 60.0

    def __init__(self, *arrivals):
        self.arrivals = list(arrivals)
        self.calls = []

    def exchange(self, line, count, pending=None, silence=True):
        self.calls.append((json.loads(line), count, pending, silence))
        return self.arrivals.pop(0)

    def close(self):
        return self.arrivals.pop(0) if self.arrivals else []

    def is_general(self, message):
        return "general" in message.get("params", {})


@pytest.fixture
def run(tmp_path):
    """Replay turns, (message, expected messages), on a target; returns the differences by the number of the turn."""

    def replayed(turns, target, recorded=True, record=False):
        file = tmp_path / "one.transcript.yaml"
        exchanges = [{"send": sent, "expect": expected} for sent, expected in turns]
        more = {"recorded": {"over": "stdio"}} if recorded else {}
        file.write_text(json.dumps({**HEAD, **more, "exchanges": exchanges}))
        results = list(replay.replay(transcript.read(str(file)), "2025-11-25", target, record))
        return {each.number: each.differences for each in results if each.differences}

    return replayed


@pytest.mark.parametrize("recorded", [False, True])
def test_a_turn_with_the_response_waits_for_its_id(run, recorded):
    target = Scripted([NOTE, answer()])

    assert run([(CALL, [NOTE, answer()])], target, recorded) == {}
    assert target.calls == [(CALL, 2, 1, False)]


@pytest.mark.parametrize(("recorded", "silence"), [(False, True), (True, False)])
def test_silence_is_observed_unless_the_conversation_was_recorded(run, recorded, silence):
    target = Scripted([], [answer()])

    assert run([(NOTE, []), (CALL, [answer()])], target, recorded) == {}
    assert target.calls == [(NOTE, 0, None, silence), (CALL, 1, 1, False)]


def test_a_request_of_the_server_before_the_response_is_waited_for(run):
    ask = {"jsonrpc": "2.0", "id": "q", "method": "ask"}
    target = Scripted([ask, answer()])

    assert run([(CALL, [ask, answer()])], target) == {}
    assert target.calls == [(CALL, 2, None, False)]


def test_independent_messages_of_a_recording_may_change_their_order(run):
    turns = [(CALL, [answer(), NOTE])]

    assert run(turns, Scripted([NOTE, answer()])) == {}
    assert 1 in run(turns, Scripted([NOTE, answer()]), recorded=False)


def test_messages_of_a_recording_may_arrive_before_their_turn(run):
    second = {**CALL, "id": 2}
    turns = [(CALL, []), (second, [answer(2)]), (NOTE, [NOTE, answer()])]

    assert run(turns, Scripted([answer()], [NOTE, answer(2)], [])) == {}
    assert run(turns, Scripted([], [answer(2), answer()], [NOTE])) == {}
    assert list(run(turns, Scripted([answer()], [NOTE, answer(2)], []), recorded=False)) == [1, 2, 3]


def test_a_response_that_the_recording_does_not_have_is_no_difference(run):
    assert run([(CALL, [])], Scripted([], [answer()])) == {}
    assert list(run([(CALL, [])], Scripted([], [answer()]), recorded=False)) == [2]


def test_another_extra_message_is_a_difference(run):
    assert list(run([(CALL, [answer()])], Scripted([answer(), answer()]))) == [1]
    assert list(run([(CALL, [answer()])], Scripted([answer()], [NOTE]))) == [2]


def test_a_recording_may_lack_notifications_that_belong_to_no_request(run):
    general = {**NOTE, "params": {"general": 1}}
    question = {**general, "id": 5}

    assert run([(CALL, [answer()])], Scripted([general, answer()], [general])) == {}
    assert [*run([(CALL, [answer()])], Scripted([general, answer()]), recorded=False)] == [1]
    assert [*run([(CALL, [answer()])], Scripted([question, answer()]))] == [1]
    assert [*run([(CALL, [answer(), general])], Scripted([answer()]))] == [1]


def test_a_turn_does_not_end_with_notifications_that_the_recording_lacks(run):
    general = {**NOTE, "params": {"general": 1}}
    other = {**NOTE, "params": {"general": 2}}
    target = Scripted([answer(), other])

    assert run([(CALL, [answer(), other])], target) == {}
    assert [target.counts(each) for each in (NOTE, general, other, answer())] == [True, False, True, True]


def test_captured_values_are_sent(run):
    turns = [
        (CALL, [answer(cursor={"$capture": "cursor"})]),
        ({**CALL, "id": 2, "params": {"cursor": {"$ref": "cursor"}}}, [answer(2, was={"$ref": "cursor"})]),
    ]
    target = Scripted([answer(cursor="xyz")], [answer(2, was="xyz")])

    assert run(turns, target) == {}
    assert target.calls[1][0]["params"] == {"cursor": "xyz"}


def test_a_turn_that_needs_a_missing_value_is_not_sent(run):
    turns = [(CALL, [answer(a={"$capture": "a"})]), ({**CALL, "params": {"$ref": "a"}}, [])]
    target = Scripted([])

    assert run(turns, target)[2] == ["not sent: nothing was captured as a"]
    assert len(target.calls) == 1


def test_a_server_that_does_not_answer_the_handshake_gets_no_further_turn(run):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    target = Scripted([])

    assert run([(hello, [answer()]), (NOTE, []), ({**CALL, "id": 2}, [answer(2)])], target)[3] == [
        "not sent: the server did not answer the handshake"
    ]
    assert len(target.calls) == 1


def test_a_server_that_hangs_costs_the_timeout_twice(run):
    calls = [({**CALL, "id": number}, [answer(number)]) for number in range(1, 7)]
    target = Scripted([], [answer(2)], [], [])
    target.timeout = 0

    found = run(calls, target)
    assert len(target.calls) == 4
    assert found[5] == found[6] == ["not sent: the server did not answer 2 requests"]


def test_a_new_version_of_the_server_is_one_difference(run):
    def versioned(number, version):
        return answer(number, _meta={"io.modelcontextprotocol/serverInfo": {"name": "a", "version": version}})

    calls = [({**CALL, "id": number}, [versioned(number, "1.0")]) for number in (1, 2, 3)]
    found = run(calls, Scripted([versioned(1, "1.1")], [versioned(2, "1.1")], [versioned(3, "1.2")]))

    assert [*found] == [1, 3]
    assert found[1][0].endswith('serverInfo.version: expected "1.0", got "1.1"')


# --- Redacted recordings


@pytest.fixture
def redacted(tmp_path):
    """The results of a redacted recording of one call, for what a server answers now; gives also its file."""

    def replayed(expected, actual, recorded=None, sent=CALL):
        file = tmp_path / "one.transcript.yaml"
        head = {**HEAD, "recorded": recorded or {"over": "stdio", "redacted": {"name": 1}}}
        file.write_text(json.dumps({**head, "exchanges": [{"send": sent, "expect": [answer(**expected)]}]}))
        found = transcript.read(str(file))
        (result,) = replay.replay(found, "2025-11-25", Scripted([answer(**actual)]))
        return found, result

    return replayed


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ("REDACTED-1", "sesame", True),
        ("REDACTED-1", 12345, True),
        ("REDACTED-1", True, False),
        ("REDACTED-1", "", False),
        ("user=ann key=REDACTED-1; REDACTED-1!", "user=ann key=a; b!", True),
        ("user=ann key=REDACTED-1", "user=eve key=a", False),
        ({"$json": {"at": "REDACTED-2"}}, '{"at": "x"}', True),
        ({"$unordered": ["REDACTED-2", "b"]}, ["b", "a"], True),
    ],
)
def test_a_placeholder_stands_for_any_text(redacted, expected, actual, matches):
    assert (not redacted({"x": expected}, {"x": actual})[1].differences) == matches


def test_turns_that_send_placeholders_are_counted(redacted):
    sent = {**CALL, "params": {"password": "REDACTED-1"}}

    assert redacted({}, {}, sent=sent)[0].redacted_turns == 1
    assert redacted({}, {})[0].redacted_turns == 0


def test_without_redaction_a_placeholder_is_a_text(redacted):
    assert redacted({"x": "REDACTED-1"}, {"x": "sesame"}, recorded={"over": "stdio"})[1].differences


def test_neither_reports_nor_files_get_the_secrets_of_a_redacted_recording(redacted):
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    found, result = redacted({"token": "REDACTED-1", "a": 1}, {"token": secret, "a": f"{secret}.", "password": secret})
    transcript.rewrite(found, {1: {"2025-11-25": result.actual}})

    assert len(result.differences) == 2 and secret not in str(result)
    assert transcript.read(found.path).value["exchanges"][0]["expect"] == [
        answer(token="REDACTED-1", a="REDACTED-2.", password="REDACTED-2")
    ]
