"""The process that fuzzes one target: `run.py` starts it with the name of the target and arguments of libFuzzer."""

import sys

import atheris

INSTRUMENTED = ["tmkb", "Registry", "h11", "yaml", "uvicorn"]


def main():
    """Fuzz until libFuzzer ends the process."""
    with atheris.instrument_imports(include=INSTRUMENTED):  # to the end, because many imports are in functions
        from tests.fuzz import targets

        name = sys.argv.pop(1)
        run = targets.TARGETS[name].prepare()
        atheris.Setup(sys.argv, run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
