"""``tmkb train``: train retrieval on the example questions of patterns."""

from __future__ import annotations

import argparse
import os

from tmkb.cli import layout, output
from tmkb.errors import SpecError
from tmkb.knowledge import library, questions
from tmkb.knowledge.retrieval import index
from tmkb.schema import paths
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    sources.configure_patterns(parser)
    parser.add_argument(
        "--calibration",
        choices=("new", "same"),
        default="new",
        help="new: measure thresholds with each author held out, which takes minutes; same: keep those of the model",
    )
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Write the model beside the patterns of the last folder. Return 2 if scikit-learn or questions are missing."""
    try:
        from tmkb.authoring import training
    except ImportError as error:
        output.fail(f"{error}. Install the libraries for training: pip install 'tmkb[train]'")
        return 2
    folders = library.resolve(paths.named(args.patterns, "TMKB_PATTERNS"))
    if bare := [paths.shown(folder) for folder in folders if not any(questions.files(folder))]:
        output.fail(
            f"no example questions in {bare[0]}; those of packaged patterns are in the source distribution only"
        )
        return 2
    asked = questions.read(folders)
    if asked.problems:
        raise SpecError(asked.problems)
    patterns = sources.library(args.patterns).patterns
    if args.calibration == "same":
        calibration = index.read(index.path(folders)).facts["calibration"]
    else:
        calibration = training.calibrate(training.folds(asked.questions, patterns), asked.questions, patterns)
    trained = training.train(*training.prepare(asked.questions, patterns))
    target = os.path.join(folders[-1], index.FILE)
    facts = {"inputs": training.digest(asked.questions, patterns), "calibration": calibration}
    size = training.write(target, trained, [pattern["id"] for pattern in patterns], facts)
    value = {"file": target, "bytes": size, "questions": len(asked.questions), "patterns": len(patterns)}
    summary = f"{paths.shown(target)}: {size} bytes from {len(asked.questions)} questions of {len(patterns)} patterns."
    output.write(args, value, layout.text(summary))
    return 0
