"""The process that fuzzes one target: ``worker PROGRAM TARGET ARGUMENT…``, with arguments of libFuzzer.

``PROGRAM`` is what libFuzzer starts to run another such process; `run.py` writes it.
"""

import sys

import atheris

from tests.fuzz import mutation

INSTRUMENTED = ["tmkb", "Registry", "yaml", "uvicorn"]


def mutate(data, most, seed):
    """Change the structure of JSON, or the bytes."""
    new = mutation.changed(data, seed) if seed % 2 else None
    return atheris.Mutate(data, most) if new is None or len(new) > most else new


def main():
    """Fuzz until libFuzzer ends the process."""
    with atheris.instrument_imports(include=INSTRUMENTED):  # to the end, because many imports are in functions
        from tests.fuzz import targets

        _, program, name, *arguments = sys.argv
        atheris.Setup([program, *arguments], targets.TARGETS[name].prepare(), custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
