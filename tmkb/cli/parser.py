"""The parser of the command line: grouped help, and a suggestion for each word that it does not know."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any, NoReturn

from tmkb.cli import layout, output

_WIDEST = 100  # columns of help


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Format help as wide as the terminal, but not so wide that lines are hard to follow."""

    def __init__(self, prog: str, **options: Any) -> None:
        width = min(shutil.get_terminal_size().columns, _WIDEST) - 2
        super().__init__(prog, **{"width": width, **options})

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs, but no examples, which are indented."""
        lines = [[line] if line.startswith(" ") else textwrap.wrap(line, width) for line in text.splitlines()]
        return "\n".join(f"{indent}{row}" for rows in lines for row in rows or [""])


class CommandParser(argparse.ArgumentParser):
    """A parser of a command, or of all.

    `groups`: heading → names of subcommands, if the help shows them in groups. `first`: those that beginners need.
    """

    groups: Mapping[str, Collection[str]] = {}
    first: Collection[str] = ()

    def __init__(self, **options: Any) -> None:
        """Create a parser. ``options``: as for `argparse.ArgumentParser`, but options cannot be abbreviated."""
        super().__init__(**{"allow_abbrev": False, "formatter_class": Formatter, **options})
        self._positionals.title = "arguments"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse words; those of a command's ``arguments`` may also stand after and between its options."""
        if not args and self._subcommands() is not None:
            self.exit(2, self.overview())
        if args and (misspelt := self._unknown_options(args)):  # before argparse reports missing arguments
            self.error(self._unknown(misspelt))
        parsed, extra = super().parse_known_args(args, namespace)
        if extra and "arguments" in vars(parsed):
            parsed.arguments += [word for word in extra if not _is_option(word)]
            extra = [*filter(_is_option, extra)]
        if extra:
            self.error(self._unknown(extra))
        return parsed, extra

    def subcommands(self) -> dict[str, CommandParser]:
        """Return the parsers of the subcommands by name."""
        commands = self._subcommands()
        return {} if commands is None else dict(commands.choices)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where help is, and exit with status 2."""
        lines = layout.text(f"{self.prog}: error: {message}\nSee `{self.prog} --help`.")
        self.exit(2, f"{layout.rendered(lines, sys.stderr)}\n")

    def format_help(self) -> str:
        """Return the help, with subcommands in `groups`."""
        if not self.groups:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for heading, names in self.groups.items():
            self._add_commands(formatter, heading, names)
        formatter.start_section("options")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def overview(self) -> str:
        """Return the help for a command without words: of the `first` commands, and the names of the others."""
        if not self.first:
            return self.format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        self._add_commands(formatter, "start here", self.first)
        formatter.add_text(self.epilog)
        start = formatter.format_help()
        formatter = self._get_formatter()  # another one aligns its columns on its own
        formatter.start_section("more commands")
        for heading, names in self.groups.items():
            if others := [name for name in names if name in self._names() and name not in self.first]:
                formatter.add_argument(argparse.Action([], heading, metavar=heading, help=", ".join(others)))
        formatter.end_section()
        formatter.add_text(f"`{self.prog} --help` describes all commands, `{self.prog} COMMAND --help` one of them.")
        return f"{start}\n{formatter.format_help()}"

    def _add_commands(self, formatter: argparse.HelpFormatter, heading: str, names: Iterable[str]) -> None:
        known = self._names()
        formatter.start_section(heading)
        formatter.add_arguments(known[name] for name in names if name in known)
        formatter.end_section()

    def _names(self) -> dict[str, argparse.Action]:
        """Return the subcommands: name → its action, as help shows it."""
        commands = self._subcommands()
        return {} if commands is None else {action.dest: action for action in commands._choices_actions}

    def _subcommands(self) -> argparse._SubParsersAction[Any] | None:
        return next((each for each in self._actions if isinstance(each, argparse._SubParsersAction)), None)

    def _unknown_options(self, words: Iterable[str]) -> list[str]:
        """Return the long options among ``words`` that a parser without subcommands does not have."""
        if self._subcommands() or any(action.nargs == argparse.REMAINDER for action in self._actions):
            return []
        options = filter(_is_option, takewhile(lambda word: word != "--", words))
        return [
            word
            for word in options
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions
        ]

    def _unknown(self, words: list[str]) -> str:
        """Return a sentence about the first of ``words``, which the parser does not know."""
        option = next((word.partition("=")[0] for word in words if _is_option(word) and word != "-"), None)
        if option is None:
            return f"There is no argument for '{words[0]}'. Put a text of several words in quotes."
        known = [each for action in self._actions for each in action.option_strings if each.startswith("--")]
        return f"There is no option {option}. {output.did_you_mean(option, known)}".rstrip()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from tmkb.schema import metaschema  # imports jsonschema

            near = metaschema.nearest(str(value), [str(choice) for choice in action.choices])
            if near and not isinstance(value, int):  # a number near 0 is no better guess than another one
                raise argparse.ArgumentError(action, f"invalid choice: {value!r}. Did you mean {near!r}?")
        super()._check_value(action, value)

    def _print_message(self, message: str, file: Any = None) -> None:
        print(message, end="", file=file or sys.stderr)  # argparse ignores output that cannot be written


def _is_option(word: str) -> bool:
    """Return whether argparse takes ``word`` for an option: one whose name has a space is a text."""
    return word.startswith("-") and " " not in word.partition("=")[0]
