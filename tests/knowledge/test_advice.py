"""Answers for a stack: the idiom that is shown, and what is left out for size."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.knowledge import advice, answer, idioms, library, reminders, stacks, tokens

NOTE = "Nothing is known of it."
SENTENCES = [
    {
        "text": "Decide for {words}: which records.",
        "general": True,
        "words": ["referee", "coach", "player", "club", "guide"],
    },
    {"text": "Who may read {words}, and “when”?", "words": ["salary", "note", "recording"]},
]
LAST = 'Each route needs a "rule".'
NOTES = NOTE, (SENTENCES, LAST)
FACTS = stacks.packaged(), *NOTES, tokens.count


@pytest.fixture(scope="module")
def folders():
    return sorted(library.load(None).folders, key=lambda folder: folder.pattern["id"])


@pytest.fixture(scope="module")
def patterns(folders):
    return [folder.pattern for folder in folders]


@pytest.fixture(scope="module")
def adviser(folders, patterns):
    written = {folder.pattern["id"]: idioms.served(folder.path, folder.pattern) for folder in folders}
    parts = advice.fragments(patterns, written, stacks.packaged(), *NOTES, tokens.count)
    return made(patterns, parts)


def made(patterns, parts, rarity=3.0):
    parts = {**parts, **answer.fragments(patterns, tokens.count)}
    return advice.Adviser(answer.Renderer(parts.__getitem__), parts.__getitem__, lambda stem: rarity)


def nearest(stack):
    return stacks.packaged().fallbacks(stack)


def value(answered):
    return json.loads(answered.text)


def number(patterns, id_):
    return next(at for at, pattern in enumerate(patterns) if pattern["id"] == id_)


@given(
    st.lists(st.integers(0, 1000), max_size=5),
    st.sampled_from([None, *stacks.packaged().stacks]),
    st.integers(100, 700),
    st.lists(st.sampled_from(["Referees", "and", "a coach,", "read", "salaries", "notes", "of Knex", "BullMQ", "```"])),
    st.lists(st.floats(0.3, 1), min_size=1, max_size=3),
)
def test_token_count_is_the_size_of_the_answer(adviser, patterns, drawn, stack, limit, asked, close):
    numbers = [*dict.fromkeys(number % len(patterns) for number in drawn)]
    for answered in (
        adviser.for_agent(numbers, [*nearest(stack), "express_knex", "express_jobs"], limit, " ".join(asked), close),
        adviser.for_human(numbers, nearest(stack)),
    ):
        assert value(answered)["token_count"] == tokens.count(answered.text)
        assert answered.text == json.dumps(value(answered), separators=(",", ":"), ensure_ascii=False)
    assert adviser.for_agent(numbers, nearest(stack), limit).patterns_included <= len(numbers)


@pytest.mark.parametrize("stack", [name for name, each in stacks.packaged().stacks.items() if "of" in each])
def test_the_tokens_of_each_note_and_lookup_are_counted(adviser, stack):
    variant = stacks.packaged().stacks[stack]
    shown = adviser.for_agent([0], [stack], 2000, variant["signs"][0])

    assert value(shown)["token_count"] == tokens.count(shown.text)


def test_form_of_an_answer(adviser, patterns):
    first = number(patterns, "TMKB-AUTH-007")
    shown = value(adviser.for_agent([first, 0, 1], nearest("rails"), 500))

    assert [list(each) for each in shown["patterns"]] == [
        ["id", "severity", "threat", "check", "principle"],
        *[["id", "severity", "check"]] * 2,
    ]
    assert (shown["code_pattern"]["language"], shown["code_pattern"]["framework"]) == ("ruby", "rails")
    assert "before_action" in shown["code_pattern"]["secure_template"]
    assert "caution" in shown["code_pattern"]
    assert shown["token_limit_reached"] is False


def test_a_close_pattern_lends_its_code_for_the_library(adviser, patterns):
    lacks, has = number(patterns, "TMKB-AUTH-033"), number(patterns, "TMKB-AUTH-007")
    numbers = [lacks, has]
    own = value(adviser.for_agent(numbers, nearest("nextjs_actions"), 500))["code_pattern"]
    assert own["framework"] == "nextjs" and "pattern" not in own

    lent = value(adviser.for_agent(numbers, nearest("nextjs_actions"), 500, close=(1, 0.9)))["code_pattern"]
    alone = value(adviser.for_agent([has], nearest("nextjs_actions"), 500))["code_pattern"]
    assert lent == {"pattern": "TMKB-AUTH-007", **alone} and alone["framework"] == "nextjs_actions"
    assert value(adviser.for_agent(numbers, nearest("nextjs"), 500, close=(1, 0.9)))["code_pattern"] == own


READ = "router.get('/:id', (req, res) => res.json(visible(req.user)))"
SIGNED = "const url = await getSignedUrl(bucket, key, { expires })"
SIGNING = "returns a signed url for a key of the bucket, which expires"


@pytest.mark.parametrize(
    ("first", "second", "question", "share", "shown"),
    [
        (("express", READ), ("express", SIGNED), SIGNING, 1, "second"),
        (("express", READ), ("express", SIGNED), "shows what is visible", 1, "first"),
        (("express", f"{READ} // signed url"), ("express", SIGNED), SIGNING, 1, "second"),
        (("express", f"{READ} // signed url"), ("express", SIGNED), SIGNING, 0.05, "first"),
        (("express", "signed url bucket key " * 2), ("express", SIGNED), SIGNING, 1, "first"),
        (("express", SIGNED), ("express_prisma", READ), SIGNING, 1, "first"),
        (("express", SIGNED), ("express_prisma", READ), "with Prisma", 1, "second"),
        (("express_prisma", READ), ("express", SIGNED), SIGNING, 1, "second"),
        (("express_prisma", SIGNED), ("express", SIGNED), SIGNING, 1, "first"),
        (("express_prisma", READ), ("express", READ + " // Express"), "routes of Express", 1, "first"),
    ],
)
def test_code_in_the_form_of_the_question_stands_for_that_of_the_first(patterns, first, second, question, share, shown):
    idioms = [{stack: {"code": code, "status": "text"}} for stack, code in (first, second)]
    ids = [pattern["id"] for pattern in patterns[:2]]
    adviser = made(patterns, advice.fragments(patterns, dict(zip(ids, idioms, strict=True)), *FACTS))
    code = value(adviser.for_agent([0, 1], nearest("express_prisma"), 500, question, (1, share)))["code_pattern"]

    assert code.get("pattern") == (ids[1] if shown == "second" else None)
    assert code["secure_template"] == (second if shown == "second" else first)[1]


def test_code_in_another_language_does_not_stand_for_it(patterns):
    idioms = (
        {"spring_kotlin": {"code": "fun show() = 1", "status": "text"}},
        {"spring": {"code": SIGNED, "status": "text"}},
    )
    ids = [pattern["id"] for pattern in patterns[:2]]
    adviser = made(patterns, advice.fragments(patterns, dict(zip(ids, idioms, strict=True)), *FACTS))

    assert (
        "pattern"
        not in value(adviser.for_agent([0, 1], nearest("spring_kotlin"), 500, SIGNING, (1, 1)))["code_pattern"]
    )


def test_the_note_counts_more_than_a_fourth_pattern_and_less_than_a_third(adviser, patterns):
    first = number(patterns, "TMKB-AUTH-007")
    for stack in ("rails", None):
        shown = value(adviser.for_agent([first, 0, 1, 2], nearest(stack), 600))
        note = shown["note"]
        assert note.endswith(LAST) and shown["patterns_included"] == 4

        three = value(adviser.for_agent([first, 0, 1, 2], nearest(stack), shown["token_count"] - 1))
        assert (three["note"], three["patterns_included"], three["token_limit_reached"]) == (note, 3, True)
        assert three.get("code_pattern") == shown.get("code_pattern")

        shorter = value(adviser.for_agent([first, 0, 1, 2], nearest(stack), three["token_count"] - 1))
        three = shorter if shorter.get("note") == LAST != note else three
        less = value(adviser.for_agent([first, 0, 1, 2], nearest(stack), three["token_count"] - 1))
        assert "note" not in less and less["patterns_included"] >= 3


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("list records", LAST),
        ("Coaches and referees of clubs", f"Decide for coach, referee, club: which records. {LAST}"),
        ("a coach, another coach's players", f"Decide for coach, player: which records. {LAST}"),
        ("a guide looks up the record by guid", f"Decide for guide: which records. {LAST}"),
        ("records of a guid", LAST),
        ("two recordings of a record", f"Who may read recording, and “when”? {LAST}"),
        ("SALARIES", f"Who may read salary, and “when”? {LAST}"),
        ("the player's note", f"Who may read note, and “when”? Decide for player: which records. {LAST}"),
        ("change this\n```\nplayer = note\n```\nfor a coach", f"Decide for coach: which records. {LAST}"),
    ],
)
def test_the_note_asks_with_the_words_of_the_question(adviser, question, note):
    assert value(adviser.for_agent([0], [], 500, question))["note"] == note


def test_a_sentence_has_five_words_at_most():
    sentences = [{"text": "Decide for {words}.", "words": ["one", "two", "three", "four", "five", "six"]}]
    found = reminders.Reminders(reminders.fragments(sentences, LAST, {}, tokens.count)).of(
        "six five four three two one"
    )

    assert [text for text, *_ in found] == ["Decide for six, five, four, three, two."]


@pytest.mark.parametrize(
    ("question", "named"), [("Send them the links", "send link"), ("link, send", ""), ("send LINKs", "send link")]
)
def test_a_term_can_have_two_words_in_a_row(question, named):
    sentences = [{"text": "Guard each {words}.", "words": ["send link"]}]
    found = reminders.Reminders(reminders.fragments(sentences, LAST, {}, tokens.count)).of(question)

    assert [text for text, *_ in found] == ([f"Guard each {named}."] if named else [])


def test_a_long_sentence_leaves_room_for_shorter_ones():
    sentences = [
        {"text": "Guard " + "very " * 40 + "well {words}.", "words": ["link"]},
        {"text": "Ask {words}.", "words": ["pet"]},
    ]
    made = reminders.Reminders(reminders.fragments(sentences, LAST, {}, tokens.count))
    found = made.of("a link to a pet")
    whole = made.note(found)

    assert made.note(found, whole["tokens"]) == whole
    assert made.note(found, whole["tokens"] - 1) == made.note(found[:1])
    assert made.note(found, made.note(found[1:])["tokens"]) == made.note(found[1:])
    assert made.note(found, 3) is None


def test_the_note_of_the_stack_precedes_general_sentences(adviser):
    note = value(adviser.for_agent([0], ["rails"], 600, "a note for a coach"))["note"]
    overlooked = stacks.packaged().stacks["rails"]["note"]

    assert note == f"Who may read note, and “when”? {overlooked} Decide for coach: which records. {LAST}"


def test_a_note_has_the_sentences_that_fit(adviser, patterns):
    first, overlooked = number(patterns, "TMKB-AUTH-007"), stacks.packaged().stacks["rails"]["note"]
    asked = "Decide for coach: which records."

    def note(limit):
        return value(adviser.for_agent([first, 0, 1], nearest("rails"), limit, "for a coach"))

    whole = note(600)
    assert whole["note"] == f"{overlooked} {asked} {LAST}"
    without_words = note(whole["token_count"] - 1)
    assert without_words["note"] == f"{overlooked} {LAST}"
    without_stack = note(without_words["token_count"] - 1)
    assert without_stack["note"] == f"{asked} {LAST}"
    assert note(without_stack["token_count"] - 1)["note"] == LAST


def test_the_note_of_a_variant_is_that_of_its_stack(adviser):
    for stack, own in (("supabase_rpc", "supabase_rpc"), ("rails_pundit", "rails"), ("drf", "django")):
        assert stacks.packaged().stacks[own]["note"] in value(adviser.for_agent([0], nearest(stack), 500))["note"]


LOOKUP, FORM = (
    stacks.packaged().stacks[each][key] for each, key in (("express_knex", "lookup"), ("rails_turbo", "note"))
)


@pytest.mark.parametrize(
    ("near", "code", "question", "sentence", "times"),
    [
        (["express_jobs", "express_knex", "express"], "job.data.id", "BullMQ and Knex", LOOKUP, 1),
        (["express_jobs", "express_knex", "express"], "knex('notes')", "BullMQ and Knex", LOOKUP, 0),
        (["express_knex", "express"], "notes.get(id)", "notes in Knex", LOOKUP, 0),
        (["express_objection", "express_knex", "express"], "Note.query()", "Objection.js", LOOKUP, 0),
        (["rails_pundit", "rails_turbo", "rails"], "policy_scope(Note)", "turbo_stream", FORM, 1),
        (["rails_turbo", "rails"], "broadcast", "turbo_stream", FORM, 1),
        (["go_bun", "go"], "db.NewSelect()", "notes in Bun", stacks.packaged().stacks["go_bun"]["lookup"], 0),
    ],
)
def test_the_note_says_how_a_named_stack_without_code_differs(patterns, near, code, question, sentence, times):
    written = {patterns[0]["id"]: {near[0]: {"code": code, "status": "text"}}}
    adviser = made(patterns, advice.fragments(patterns, written, *FACTS))

    assert value(adviser.for_agent([0], near, 500, question))["note"].count(sentence) == times


@pytest.mark.parametrize("framework", ["objection", "Express with Objection.js"])
def test_a_framework_names_a_library_as_the_question_does(full_server, framework):
    advise = full_server.provider("knowledge").advise
    shown = json.loads(advise("a BullMQ worker that publishes documents", framework=framework).content[0]["text"])

    assert stacks.packaged().stacks["express_objection"]["lookup"] in shown["note"]


def test_code_that_is_hardly_like_the_question_is_that_of_the_nearest_stack(patterns):
    codes = {"django_ninja": "router.patch()", "django": "invoices_of(user)"}  # `of` is in the question
    written = {patterns[0]["id"]: {stack: {"code": code, "status": "text"} for stack, code in codes.items()}}
    adviser = made(patterns, advice.fragments(patterns, written, *FACTS), rarity=1.0)
    shown = value(adviser.for_agent([0], [*codes], 500, "a list of notes"))["code_pattern"]

    assert shown["framework"] == "django_ninja"


@pytest.mark.parametrize(
    ("framework", "question", "library"),
    [
        ("fastapi", "PATCH /notes/{id} with Peewee models", "flask_peewee"),
        ("nestjs", "update a note with a Mongoose model", "express_mongoose"),
        ("nextjs", "a route handler that deletes a note with node-postgres", "express_pg"),
    ],
)
def test_a_library_of_another_framework_is_explained(full_server, framework, question, library):
    shown = json.loads(full_server.provider("knowledge").advise(question, framework=framework).content[0]["text"])

    assert shown["code_pattern"]["framework"] == framework
    assert stacks.packaged().stacks[library]["lookup"] in shown["note"]


def test_packaged_reminders_have_no_word_twice():
    """The second sentence of a word would repeat it, and two words of one stem would hide each other."""
    found = Counter(reminders.stemmed(term) for sentence in reminders.packaged() for term in sentence["words"])

    assert [stem for stem, number in found.items() if number > 1] == []


def test_the_code_of_the_pattern_is_that_of_its_stack(adviser, patterns):
    first = number(patterns, "TMKB-AUTH-007")
    shown = value(adviser.for_agent([first], nearest("flask"), 500))["code_pattern"]

    assert shown["secure_template"] == patterns[first]["template"]
    assert shown["caution"] == patterns[first]["agent_summary"]["caution"]
    assert shown["status"] == "proven"


def test_without_a_stack_there_is_no_code(adviser, patterns):
    assert "code_pattern" not in value(adviser.for_agent([0], [], 500))


def test_another_stack_stands_for_one_without_idiom(patterns):
    idiom = {"express": {"code": "next();\n", "status": "text"}}
    parts = advice.fragments(patterns, {patterns[0]["id"]: idiom}, stacks.packaged(), *NOTES, tokens.count)
    adviser = made(patterns, parts)

    assert value(adviser.for_agent([0], nearest("nestjs"), 500))["code_pattern"]["framework"] == "express"
    assert "code_pattern" not in value(adviser.for_agent([0], nearest("rails"), 500))


def test_no_match_has_a_note(adviser):
    for answered in (adviser.for_agent([], nearest("rails"), 500), adviser.for_human([], [])):
        assert value(answered)["note"] == NOTE
        assert value(answered)["pattern_count"] == 0
    assert value(adviser.for_agent([], [], 500))["token_count"] == tokens.count(adviser.for_agent([], [], 500).text)


def test_a_server_without_notes_answers_all_the_same(patterns):
    adviser = made(patterns, advice.fragments(patterns, {}, stacks.packaged(), "", None, tokens.count))

    assert value(adviser.for_agent([], [], 500))["note"] == ""
    assert "note" not in value(adviser.for_agent([0], [], 500))


def test_the_code_counts_more_than_further_patterns(adviser, patterns):
    first = number(patterns, "TMKB-AUTH-007")
    whole = value(adviser.for_agent([first, 0, 1], nearest("rails"), 500))
    size = whole["token_count"] - tokens.count(json.dumps({"note": whole["note"]}))
    shown = value(adviser.for_agent([first, 0, 1], nearest("rails"), size))

    assert (shown["pattern_count"], shown["patterns_included"], shown["token_limit_reached"]) == (3, 2, True)
    assert shown["code_pattern"] == whole["code_pattern"]
    least = value(adviser.for_agent([first], nearest("rails"), 150))
    assert "code_pattern" not in least and least["token_limit_reached"] is True
    assert value(adviser.for_agent([first], nearest("rails"), 10))["patterns_included"] == 0


def test_every_packaged_idiom_fits(adviser, patterns):
    """With the first pattern, and three patterns in all, no answer is cut."""
    longest = sorted(range(len(patterns)), key=lambda n: -adviser.patterns[n]["short"]["more"])
    for at in range(len(patterns)):
        others = [other for other in longest if other != at][:2]
        for stack in stacks.packaged().stacks:
            shown = value(adviser.for_agent([at, *others], nearest(stack), 500))
            assert shown["token_limit_reached"] is False, (patterns[at]["id"], stack)
