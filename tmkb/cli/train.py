"""``tmkb train``: train retrieval on the example questions of patterns."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from importlib import util

from tmkb.authoring import inputs
from tmkb.cli import layout, loader, output
from tmkb.errors import SpecError
from tmkb.knowledge import idioms, library, questions
from tmkb.knowledge.pattern import Pattern
from tmkb.knowledge.questions import Question
from tmkb.knowledge.retrieval import index, signs
from tmkb.schema import paths
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    sources.configure_patterns(parser)
    parser.add_argument(
        "--calibration",
        choices=("new", "same"),
        default="new",
        help="new: measure thresholds with authors held out, which takes minutes; same: keep those of the model",
    )
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Write the model beside the patterns of the last folder. Return 2 if scikit-learn or questions are missing."""
    if not util.find_spec("sklearn"):
        return output.lacks_extra("train", "train")
    sources.require_folders(args.patterns)
    folders = library.resolve(paths.named(args.patterns, "TMKB_PATTERNS"))
    if bare := [paths.shown(folder) for folder in folders if not any(questions.files(folder))]:
        output.fail(
            f"no example questions in {bare[0]}; those of packaged patterns are in the source distribution only"
        )
        return 2
    patterns, examples = selected(args)
    if not _is_enough(patterns, examples, args.calibration):
        output.fail(
            f"Training needs a pattern with {inputs.ENOUGH} questions, questions of the kind negative, and two "
            "authors. A pattern with fewer needs no training; `--patterns packaged` adds the packaged questions."
        )
        return 2
    target = os.path.join(folders[-1], index.FILE)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)  # known before the minutes of training
        same_as = folders if args.calibration == "same" else []
        with output.progress(f"Training with {len(examples)} questions of {len(patterns)} patterns") as show:
            size = _train(target, examples, patterns, same_as)
            if any(each.secure for each in examples):
                show("Training the model of reviews")
                _train_review(os.path.join(folders[-1], index.REVIEW_FILE), examples, patterns, same_as, args)
    except OSError as error:
        output.fail(f"cannot write {paths.shown(target)}: {error.strerror}")
        return 2
    value = {"file": target, "bytes": size, "questions": len(examples), "patterns": len(patterns)}
    summary = f"{paths.shown(target)}: {size} bytes from {len(examples)} questions of {len(patterns)} patterns."
    output.write(args, value, layout.text(summary))
    return 0


def selected(args: argparse.Namespace) -> tuple[list[Pattern], list[Question]]:
    """Return the patterns in the folders of ``args`` that are trained, and the questions.

    Raises:
        SpecError: a file of questions has problems.
    """
    asked = questions.read(library.resolve(paths.named(args.patterns, "TMKB_PATTERNS")))
    if asked.problems:
        raise SpecError(asked.problems)
    return inputs.selected(loader.library(args.patterns).patterns, asked.questions)


def _is_enough(patterns: Sequence[Pattern], examples: Sequence[Question], calibration: str) -> bool:
    authors = {question.author for question in examples}
    has_negatives = not all(question.grades for question in examples)
    return bool(patterns) and has_negatives and (calibration == "same" or len(authors) > 1)


def _train(target: str, examples: Sequence[Question], patterns: Sequence[Pattern], same_as: Sequence[str]) -> int:
    """Write the model and return its size. It has the calibration of the model for the folders ``same_as``, if any."""
    from tmkb.authoring import training

    queries = [each for each in examples if each.is_query]
    if same_as:
        calibration = index.read(index.path(same_as)).facts["calibration"]
    else:
        calibration = training.calibrate(training.folds(queries, patterns), queries, patterns)
    fit = partial(training.fit, weights=training.importance(queries, patterns))
    trained = training.train(*training.prepare(queries, patterns), fit)
    facts = {"inputs": inputs.digests(examples, patterns), "calibration": calibration}
    return training.write(target, trained, [pattern["id"] for pattern in patterns], facts)


def _train_review(
    target: str,
    examples: Sequence[Question],
    patterns: Sequence[Pattern],
    same_as: Sequence[str],
    args: argparse.Namespace,
) -> None:
    """Write the model of reviews, which also learns from idioms."""
    from tmkb.authoring import mistakes, training

    labelled = mistakes.prepare(examples, _idioms(args), patterns)
    if same_as and os.path.isfile(path := index.path(same_as, index.REVIEW_FILE)):
        calibration = index.read(path).facts["calibration"]
    else:
        calibration = mistakes.calibrate(mistakes.folds(labelled), labelled, signs.packaged())
    trained = mistakes.train(labelled.every, labelled.grades, labelled.weights)
    facts = {"inputs": inputs.digests(examples, patterns), "calibration": calibration}
    training.write(target, trained, [pattern["id"] for pattern in patterns], facts, compressed=True)


def _idioms(args: argparse.Namespace) -> list[str]:
    """Return the code of all idioms."""
    folders = loader.library(args.patterns).folders
    served = [idioms.served(folder.path, folder.pattern) for folder in folders if folder.pattern]
    return [idiom["code"] for each in served for idiom in each.values()]
