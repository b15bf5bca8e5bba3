"""What each part of search is worth, and how long search takes, also beside a library of BM25.

    python -m tests.bench.retrieval [ablation|times|scale|peer]

Prints Markdown for docs/retrieval.md. Give it the machine for itself.
"""

import json
import os
import random
import sys
import time

from tests.support import packages
from tmkb.authoring import metrics
from tmkb.knowledge import library
from tmkb.knowledge.retrieval import bm25
from tmkb.knowledge.retrieval.index import EVERY, Index, build
from tmkb.schema import paths

DATA = os.path.join(paths.ROOT, "tests", "data")
SETS = ("queries", "queries_own", "queries_held", "queries_third", "queries_last")
SIZES = (100, 1_000, 10_000)
LENGTHS = (1, 10, 100, 1_000, 10_000)
STEPS = [
    ("BM25 and keywords of the patterns", ("text", "keywords")),
    ("+ cues of one concept or term", ("text", "keywords", "cues")),
    ("+ cues of several (pairs)", ("text", "keywords", "cues", "pairs")),
    ("+ code read by marks and shapes", ("text", "keywords", "cues", "pairs", "code")),
    ("+ spelling", ("text", "keywords", "cues", "pairs", "code", "spelling")),
    ("+ the gate", ("text", "keywords", "cues", "pairs", "code", "spelling", "gate")),
    ("all, with relations", EVERY),
    *((f"all without {part}", EVERY - {part}) for part in ("text", "keywords", "cues", "pairs", "code")),
]


def questions(name):
    with open(os.path.join(DATA, f"{name}.jsonl"), encoding="utf-8") as file:
        return metrics.read(file)


def ablation():
    patterns = library.load(None).patterns
    built = json.loads(json.dumps(build(patterns)))
    sets = [questions(name) for name in SETS]
    print("| | " + " | ".join(SETS) + " |")
    print("|---" * (len(SETS) + 1) + "|")

    ranked = bm25.ranking(patterns)
    row("plain BM25", sets, lambda question: ranked(question["context"]))
    for name, use in STEPS:
        index = Index(built.__getitem__, use)

        def answer(question, index=index):
            found = index.search(question["context"], question.get("language"), question.get("framework"))
            return [index.patterns[number]["id"] for number in found]

        row(name, sets, answer)


def row(name, sets, answer):
    found = [metrics.evaluate(asked, answer) for asked in sets]
    print(
        f"| {name} | " + " | ".join(f"{f['all']['ndcg']:.3f}, {f['negatives']['answered']:.2f}" for f in found) + " |"
    )


def times():
    index = Index(json.loads(json.dumps(build(library.load(None).patterns))).__getitem__)
    contexts = [question["context"] for name in SETS for question in questions(name)]
    tell("sentences and snippets", index, contexts)
    tell("100 lines", index, [lines(100)] * 20)
    for length in LENGTHS:
        tell(f"{length} words", index, [" ".join((" ".join(contexts).split() * 10)[:length])] * 5)


def scale():
    real = library.load(None).patterns
    contexts = [question["context"] for name in SETS for question in questions(name)]
    for size in SIZES:
        started = time.perf_counter()
        built = json.loads(json.dumps(build(list(generated(real, size)))))
        print(f"{size} patterns: built in {time.perf_counter() - started:.1f} s")
        tell(f"{size} patterns", Index(built.__getitem__, EVERY - {"gate"}), contexts)


def peer():
    """Ours and rank-bm25 in turns, over the same texts and questions; both cut questions into the same stems."""
    sys.path.insert(0, packages.for_python("bm25", "rank-bm25==0.2.2"))
    from rank_bm25 import BM25Okapi

    real = library.load(None).patterns
    contexts = [question["context"] for name in SETS for question in questions(name)]
    for size in (len(real), SIZES[-1]):
        patterns = list(generated(real, size))
        ours = Index(
            json.loads(json.dumps(build(patterns))).__getitem__, EVERY if size == len(real) else EVERY - {"gate"}
        )
        theirs = BM25Okapi([bm25.stems(bm25.text(pattern)) for pattern in patterns])
        asked = contexts if size == len(real) else contexts[:50]

        def theirs_best(text, theirs=theirs):
            return theirs.get_scores(bm25.stems(text)).argsort()[-3:]

        taken = {"ours": [], "rank-bm25": []}
        for context in asked * 3:
            for name, search in (("ours", ours.search), ("rank-bm25", theirs_best)):
                started = time.perf_counter()
                search(context)
                taken[name].append((time.perf_counter() - started) * 1e6)
        medians = {name: sorted(each)[len(each) // 2] for name, each in taken.items()}
        ratio = medians["rank-bm25"] / medians["ours"]
        print(
            f"{size} patterns: ours {medians['ours']:.0f} µs, rank-bm25 {medians['rank-bm25']:.0f} µs, {ratio:.1f} times"
        )


def generated(real, size):
    """``size`` patterns of sentences and keywords of the real ones, and the real ones among them."""
    draw = random.Random(1)
    yield from real
    for number in range(size - len(real)):
        of = [draw.choice(real) for _ in range(6)]
        keywords = [draw.choice(pattern["triggers"]["keywords"]) for pattern in of]
        yield {
            **of[0],
            "id": f"GEN-{number:05}-001",
            "description": of[1]["description"],
            "agent_summary": of[2]["agent_summary"],
            "steps": of[3]["steps"],
            "triggers": {"keywords": list(dict.fromkeys(keywords)), "actions": of[4]["triggers"].get("actions", [])},
            "related_patterns": [],
        }


def lines(count):
    found = []
    for name in sorted(os.listdir(paths.PATTERNS)):
        path = os.path.join(paths.PATTERNS, name, "vulnerable.py")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                found += file.read().splitlines()
    return "\n".join(found[:count])


def tell(name, index, contexts):
    for context in contexts:
        index.search(context)
    taken = []
    for _ in range(5):
        for context in contexts:
            started = time.perf_counter()
            index.search(context)
            taken.append((time.perf_counter() - started) * 1e6)
    taken.sort()
    print(f"{name}: median {taken[len(taken) // 2]:.0f} µs, p99 {taken[int(len(taken) * 0.99)]:.0f} µs")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["ablation", "times", "scale", "peer"]:
        {"ablation": ablation, "times": times, "scale": scale, "peer": peer}[chosen]()
