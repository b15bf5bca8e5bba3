"""What can be wrong with a file, besides what the operating system says (OSError)."""


class Corrupt(Exception):
    """Bytes that are no hive, or one that a change would damage."""


class TooLarge(Exception):
    """A file, or a way to an answer within it, that is longer than permitted."""


class Changed(Exception):
    """A file that is not any more what it was when it was read."""


class NoWriter(Exception):
    """The library that changes hives is not installed."""
