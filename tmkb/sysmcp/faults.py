"""Errors of files and calls that OSError does not cover. Providers turn them into a ToolError."""


class Corrupt(Exception):
    """The file is not a hive, or the hive is damaged."""


class TooLarge(Exception):
    """The file exceeds a size limit, or reading it exceeds a limit of steps."""


class Changed(Exception):
    """Another process changed the file since it was read."""


class WriterMissing(Exception):
    """The library that writes hives is not installed."""


class TimeUp(Exception):
    """The call exceeds its time limit."""
