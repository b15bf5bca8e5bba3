"""The process that fuzzes one target: ``worker PROGRAM TARGET ARGUMENT…``, with arguments of libFuzzer.

``PROGRAM`` is what libFuzzer starts to run another such process; `run.py` writes it.
"""

import sys

import atheris

INSTRUMENTED = ["tmkb", "Registry", "h11", "yaml", "uvicorn"]


def main():
    """Fuzz until libFuzzer ends the process."""
    with atheris.instrument_imports(include=INSTRUMENTED):  # to the end, because many imports are in functions
        from tests.fuzz import targets

        _, program, name, *arguments = sys.argv
        atheris.Setup([program, *arguments], targets.TARGETS[name].prepare())
        atheris.Fuzz()


if __name__ == "__main__":
    main()
