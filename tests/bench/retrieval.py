"""How long search takes, also with many patterns, and how good and fast it is beside a library of BM25.

    python -m tests.bench.retrieval [times|scale|peer]

Prints Markdown for docs/retrieval.md. Times are CPU times, the best of several runs, so that other processes count less.
"""

import gc
import json
import os
import random
import sys
import time

from tests.support import packages
from tmkb.authoring import bm25, metrics
from tmkb.knowledge import library, questions
from tmkb.knowledge.retrieval import index as indexes
from tmkb.knowledge.retrieval import texts
from tmkb.knowledge.retrieval.index import Index
from tmkb.schema import paths

SIZES = (100, 1_000, 10_000)
LENGTHS = (1, 10, 100, 1_000, 10_000)
RUNS = 5
SAMPLE = 10  # one question in so many


def asked():
    return questions.read([paths.PATTERNS]).questions[::SAMPLE]


def index_of(patterns):
    built = indexes.build(patterns, indexes.path([]), lambda ids: {})
    return Index(json.loads(json.dumps(built)).__getitem__)


def times():
    patterns = library.load(None).patterns
    once(index_of(patterns), [question.context for question in questions.read([paths.PATTERNS]).questions])
    index = index_of(patterns)
    contexts = [question.context for question in asked()]
    tell("sentences", index, [context for context in contexts if "\n" not in context])
    tell("snippets", index, [context for context in contexts if "\n" in context])
    tell("100 lines of questions", index, parts_of("\n".join(contexts).splitlines()[:600]))
    tell("100 lines of code", index, parts_of(code()))
    for length in LENGTHS:
        tell(f"{length} words", index, [" ".join((" ".join(contexts).split() * 10)[:length])])
    tell("1 MB", index, ["\n".join(contexts * 20)[: 1 << 20]])


def scale():
    real = library.load(None).patterns
    contexts = [question.context for question in asked()]
    for size in SIZES:
        started = time.perf_counter()
        index = index_of(list(generated(real, size)))
        print(f"| {size} patterns, built in {time.perf_counter() - started:.1f} s |")
        tell(f"{size} patterns", index, contexts)


def peer():
    """Compare with rank-bm25 over the same texts; both are asked the same questions in turns.

    The quality is that of questions which the model was trained on; `tmkb eval --cross` measures others.
    """
    sys.path.insert(0, packages.for_python("bm25", "rank-bm25==0.2.2"))
    from rank_bm25 import BM25Okapi

    real = library.load(None).patterns
    labelled = asked()
    for size in (len(real), SIZES[-1]):
        patterns = list(generated(real, size))
        index = index_of(patterns)
        theirs = BM25Okapi([bm25.stems(texts.of(pattern)) for pattern in patterns])

        def theirs_best(text, theirs=theirs):
            return theirs.get_scores(bm25.stems(text)).argsort()[-3:][::-1]

        gc.collect()
        gc.freeze()
        taken, ndcg = {"ours": [], "rank-bm25": []}, {"ours": [], "rank-bm25": []}
        for question in labelled if size == len(real) else labelled[:50]:
            for name, search in (("ours", index.search), ("rank-bm25", theirs_best)):
                search(question.context)
                started = time.thread_time()
                numbers = search(question.context)
                taken[name].append((time.thread_time() - started) * 1e6)
                if question.grades:
                    ndcg[name].append(metrics.score(question.grades, [patterns[n]["id"] for n in numbers])["ndcg"])
        ours, other = (sorted(each)[len(each) // 2] for each in taken.values())
        quality = [sum(each) / len(each) for each in ndcg.values()]
        print(
            f"{size} patterns: ours {ours:.0f} µs, rank-bm25 {other:.0f} µs, {other / ours:.2f} times as long; "
            f"nDCG@3 {quality[0]:.3f} and {quality[1]:.3f}, {quality[0] / quality[1]:.2f} times as good"
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


def code():
    found = []
    for name in sorted(os.listdir(paths.PATTERNS)):
        path = os.path.join(paths.PATTERNS, name, "vulnerable.py")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                found += file.read().splitlines()
    return found


def parts_of(lines):
    """Return the texts of each 100 lines."""
    return ["\n".join(lines[at : at + 100]) for at in range(0, len(lines) - 99, 100)]


def once(index, contexts):
    """Tell how long each question takes that was never asked before, in random order: the first, and the second half."""
    random.Random(1).shuffle(contexts)
    gc.collect()
    gc.freeze()
    taken = []
    for context in contexts:
        started = time.thread_time()
        index.search(context)
        taken.append((time.thread_time() - started) * 1e6)
    print(f"| the first question | {taken[0]:.0f} µs | |")
    taken = sorted(taken[len(taken) // 2 :])
    print(f"| questions, each once | {taken[len(taken) // 2]:.0f} µs | {taken[int(len(taken) * 0.99)]:.0f} µs |")


def tell(name, index, contexts):
    gc.collect()
    gc.freeze()  # the labelled questions, which a server does not hold
    best = [float("inf")] * len(contexts)
    for _ in range(RUNS):
        for at, context in enumerate(contexts):
            started = time.thread_time()
            index.search(context)
            best[at] = min(best[at], (time.thread_time() - started) * 1e6)
    best.sort()
    print(f"| {name} | {best[len(best) // 2]:.0f} µs | {best[int(len(best) * 0.99)]:.0f} µs |")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["times", "scale", "peer"]:
        {"times": times, "scale": scale, "peer": peer}[chosen]()
