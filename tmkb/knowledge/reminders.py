"""Sentences that end an answer: what people overlook in its stack, and what the words of a question leave to decide.

A pattern cannot know who takes part in the work, and which fields and ways it has. The sentences ask for that with the
words of the question. Their tokens are counted in advance, like those of `tmkb.knowledge.answer`: cl100k_base splits a
text before each space and between a letter and punctuation.
"""

from __future__ import annotations

import math
import os
import re
from itertools import pairwise, zip_longest

from tmkb.knowledge.answer import encoded
from tmkb.knowledge.retrieval import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tmkb.schema.values import JsonObject

    Sentence = tuple[str, int, int]  # its text, and its tokens as the first of a note and as a later one

FILE = "_reminders.yaml"  # beside the packaged patterns
_MOST = 5  # terms in a sentence
_CODE = "```"  # begins and ends code in a question
_PLACE = "{words}"
_PLURALS = re.compile(r"\b[A-Z]{2,}s\b")  # of abbreviations, such as URLs: its last letter begins no other word
_BEGIN, _END = 'note":"', ',"'  # before the first sentence, and after the quote that ends the last one


def path() -> str:
    """Return the file of the packaged sentences."""
    from tmkb.schema import paths

    return os.path.join(paths.PATTERNS, FILE)


def packaged() -> list[dict[str, Any]]:
    """Return the packaged sentences: `text`, and the `words` for it. Raises SpecError."""
    from tmkb.schema import metaschema, paths

    value: Any = metaschema.read(path(), os.path.join(paths.SCHEMAS, "meta", "reminders.yaml")).value
    sentences: list[dict[str, Any]] = value["sentences"]
    return sentences


def fragments(
    sentences: Sequence[Mapping[str, Any]],
    last: str,
    stacks: Mapping[str, Mapping[str, Any]],
    count: Callable[[str], int],
) -> JsonObject:
    """Return what `Reminders` joins.

    Args:
        sentences: as `packaged` returns them.
        last: the sentence that follows them in each answer.
        stacks: the stacks of `_stacks.yaml`, of which `note` and `lookup` can precede that sentence.
        count: returns the tokens of a text.
    """

    def of_stacks(key: str) -> JsonObject:
        texts = {name: encoded(stack[key])[1:-1] for name, stack in stacks.items() if key in stack}
        return {name: [text, count(text), count(f" {text}")] for name, text in texts.items()}

    prepared: list[Any] = []
    for sentence in sentences:
        before, after = encoded(sentence["text"])[1:-1].split(f" {_PLACE}")
        known = {stemmed(term): [term, count(f" {term}")] for term in sentence["words"]}
        sizes = [count(before), count(f" {before}"), count(after)]
        general = sentence.get("general", False)
        prepared.append({"before": before, "after": after, "tokens": sizes, "words": known, "general": general})
    end = encoded(last)[1:] + _END
    tokens: list[Any] = [count(end), count(f" {end}")]
    forms: list[Any] = [name for name, stack in stacks.items() if "note" in stack and "of" in stack]
    frame: JsonObject = {"begin": count(_BEGIN), "comma": count(","), "end": end, "tokens": tokens}
    of_all: JsonObject = {"notes": of_stacks("note"), "lookups": of_stacks("lookup"), "forms": forms}
    return {"sentences": prepared, **of_all, **frame}


def stemmed(term: str) -> str:
    """Return the stems of a term of one or two words."""
    return " ".join(words.stem(word) for word in term.split())


class Reminders:
    """Finds the sentences of a question."""

    def __init__(self, prepared: Any) -> None:
        self._prepared = prepared

    def of(self, question: str, stacks: Sequence[str] = (), unshown: Sequence[str] = ()) -> list[Sentence]:
        """Return the sentences for an answer to ``question``, without the closing one.

        They have the order of their importance: lookups, the note of the stack if it is a form of work, sentences for
        words of the question, other notes, and general sentences. Code between fences shows nothing.

        Args:
            question: a question.
            stacks: its stack, and those that can stand for it. The first that has a note counts.
            unshown: stacks that it names without code in the answer. Their lookups are shown, or else their notes.
        """
        prose = _PLURALS.sub(lambda found: found[0].lower(), " ".join(question.split(_CODE)[::2]))
        single = [(words.stems[word], len(word)) for word in words.unstemmed(prose[: words.MAX_CHARACTERS])]
        pairs = [(f"{one} {two}", length + more) for (one, length), (two, more) in pairwise(single)]
        terms = [term for both in zip_longest(pairs, single) for term in both if term]
        notes, lookups, forms = (self._prepared[key] for key in ("notes", "lookups", "forms"))
        form = [stack for stack in stacks[:1] if stack in forms]
        own = [stack for stack in stacks if stack in notes][:1]
        others = [stack for stack in unshown if stack not in lookups]
        return [
            *(lookups[stack] for stack in unshown if stack in lookups),
            *(notes[stack] for stack in form),
            *self._sentences(terms, general=False),
            *(notes[stack] for stack in dict.fromkeys([*own, *others]) if stack not in form),
            *self._sentences(terms, general=True),
        ]

    def _sentences(self, terms: Sequence[tuple[str, int]], general: bool) -> list[Sentence]:
        """Return the sentences with words among ``terms``, which are stems and the lengths of their words."""
        found: list[Sentence] = []
        for sentence in self._prepared["sentences"]:
            if sentence["general"] != general:
                continue
            known: dict[str, tuple[str, int]] = sentence["words"]
            # a shorter word is another one: `guid` is not "guide", and `record` is not "recording"
            shown = dict.fromkeys(
                stem for stem, length in terms if stem in known and length >= len(known[stem][0].replace(" ", ""))
            )
            if named := [known[stem] for stem in shown][:_MOST]:
                first, later, after = sentence["tokens"]
                more = after + self._prepared["comma"] * (len(named) - 1) + sum(tokens for _, tokens in named)
                text = f"{sentence['before']} {', '.join(word for word, _ in named)}{sentence['after']}"
                found.append((text, first + more, later + more))
        return found

    def note(self, sentences: Sequence[Sentence], room: float = math.inf) -> dict[str, Any] | None:
        """Return the note as a fragment of at most ``room`` tokens; None if even the closing sentence has more.

        It has those of ``sentences`` that fit beside the ones before them, and the closing one.
        """
        end = self._prepared["tokens"]
        texts: list[str] = []
        size: int = self._prepared["begin"] + end[False]
        for text, first, later in sentences:
            more = later if texts else first + end[True] - end[False]
            if size + more <= room:
                texts.append(text)
                size += more
        return {"text": _BEGIN + " ".join([*texts, self._prepared["end"]]), "tokens": size} if size <= room else None
