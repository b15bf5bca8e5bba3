"""The query log: one line of JSON for each query, in files that only their owner can read.

Each process writes its own files: at most `_FILE_BYTES` and a day each. The oldest files of the folder are deleted when
all together exceed a limit. A line is one `write` to the end of a file, so that a crash can cut only the last one. A
line that cannot be written is lost; the server goes on.
"""

from __future__ import annotations

import os
import sys
import time

from tmkb.insight.observer import Receiver
from tmkb.stdlib import encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.insight.observer import Completion
    from tmkb.server.log import Log

CONTEXTS = ("none", "hash", "text")
PRINCIPALS = ("none", "hash", "view")
PREFIX, SUFFIX = "queries-", ".jsonl"
MEGABYTES = 1000  # of all files together
_MEGABYTE = 1_000_000
_FILE_BYTES = 10 * _MEGABYTE
_DAY = 86400  # seconds
_MOST_TEXT, _MOST_NAME = 2000, 80  # characters of a context, and of a language or framework
_DIGITS = 16  # of a hash, in hexadecimal
_encoded = encoder(ensure_ascii=True)


class QueryLog(Receiver):
    """Writes a line for each query for patterns."""

    def __init__(
        self,
        folder: str,
        log: Log,
        *,
        context: str = "none",
        principal: str = "none",
        key: bytes | None = None,
        megabytes: int = MEGABYTES,
    ) -> None:
        """Create the folder, if it does not exist.

        Args:
            folder: where the files are.
            log: gets a line if the file cannot be written.
            context: what is kept of a query's text, one of `CONTEXTS`.
            principal: what is kept of its owner, one of `PRINCIPALS`.
            key: of the hashes; None for a random one, so that hashes of two processes differ.
            megabytes: the limit of all files together.

        Raises:
            OSError: if files cannot be created in the folder.
        """
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied", folder)
        self.folder = folder
        self.log = log
        self.context = context
        self.principal = principal
        self.key = key or os.urandom(32)
        self.most = megabytes * _MEGABYTE
        self.file_bytes = min(_FILE_BYTES, self.most // 10)
        self.fd: int | None = None
        self.size = self.day = 0  # of the open file
        self.is_cut = False  # whether the last line is incomplete
        self.is_failing = False

    def completed(self, completion: Completion) -> None:
        """Write a line if the request was a query that was answered, also with no pattern."""
        facts = completion.exchange.facts
        if "pattern_ids" in facts:
            self._write(_encoded(self._line(completion, facts)).encode("ascii") + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def _line(self, completion: Completion, facts: Any) -> dict[str, object]:
        exchange = completion.exchange
        arguments: Any = exchange.params.get("arguments", {})
        caller = exchange.connection.caller
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "tool": completion.tool,
            "stack": facts["stack"],
            **{name: arguments[name][:_MOST_NAME] for name in ("language", "framework") if arguments.get(name)},
            "patterns": facts["pattern_ids"],
            "tokens": facts["token_count"],
        }
        context = str(arguments.get("context", "")).strip()
        if self.context == "text":
            line["context"] = context[:_MOST_TEXT]
        elif self.context == "hash":
            line["context_hash"] = self._hash(" ".join(context.lower().split()))
        if self.principal == "view":
            line["view"] = caller.view
        elif self.principal == "hash" and caller.principal:
            line["principal_hash"] = self._hash(caller.principal)
        return line

    def _hash(self, text: str) -> str:
        import hmac

        return hmac.new(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:_DIGITS]

    def _write(self, line: bytes) -> None:
        try:
            if self.fd is None or self._is_full(len(line)):
                self._open()
            assert self.fd is not None
            data = b"\n" * self.is_cut + line
            written = os.write(self.fd, data)
            self.size += written
            self.is_cut = self.is_cut if not written else written < len(data)
            reason = "" if written == len(data) else "the line was cut"
        except OSError as error:
            reason = os.strerror(error.errno or 0)
        if reason and not self.is_failing:
            self.log.write("usage_not_written", folder=self.folder, reason=reason)
        self.is_failing = bool(reason)

    def _is_full(self, more: int) -> bool:
        """Return whether the next line belongs into a new file, also because somebody has deleted this one."""
        assert self.fd is not None
        return (
            self.size + more > self.file_bytes
            or time.time() // _DAY != self.day
            or (sys.platform != "win32" and not os.fstat(self.fd).st_nlink)
        )

    def _open(self) -> None:
        """Open a new file, and delete the oldest ones beyond the limit."""
        self.close()
        began = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        for number in range(1000):
            name = f"{PREFIX}{began}-{_host()}-{os.getpid()}-{number}{SUFFIX}"
            try:
                self.fd = os.open(os.path.join(self.folder, name), flags, 0o600)
                break
            except FileExistsError:
                continue
        self.size, self.day, self.is_cut = 0, int(time.time() // _DAY), False
        self._delete_oldest()

    def _delete_oldest(self) -> None:
        total = self.file_bytes  # of the new one
        for name in sorted(filter(is_log, os.listdir(self.folder)), reverse=True):
            path = os.path.join(self.folder, name)
            try:
                size = os.stat(path).st_size
                total += size
                if size and total > self.most:
                    os.unlink(path)
            except OSError:  # another process has deleted it, or it belongs to somebody else
                continue


def is_log(name: str) -> bool:
    """Return whether a file of this name belongs to the query log."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def _host() -> str:
    if sys.platform == "win32":
        name = os.environ.get("COMPUTERNAME", "")
    else:
        name = os.uname().nodename
    return "".join(character if character.isalnum() or character == "." else "_" for character in name)[:64]
