"""Serve one connection over two file descriptors, one message per line.

A client may write many requests before it reads a response. Responses wait in memory up to a limit, then reading
pauses.
"""

from __future__ import annotations

import os
import sys

from tmkb.transport.loop import Conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.transport.engine import Engine
    from tmkb.transport.loop import Updates


def serve(runtime: Engine, stdin: int = 0, stdout: int = 1, updates: Updates | None = None) -> None:
    """Serve one connection until the input ends, a signal arrives, or the reader of the output disconnects.

    ``updates``: the source of reloaded snapshots.
    """
    _occupy_standard_descriptors()
    conversation = Conversation(runtime, updates)
    if sys.platform == "win32":
        from tmkb.transport import threads

        threads.run(conversation, stdin, stdout)
    else:
        from tmkb.transport import polling

        polling.run(conversation, stdin, stdout)
    runtime.stop()
    runtime.log.write("shutdown")
    runtime.log.flush()


def _occupy_standard_descriptors() -> None:
    """Open the standard descriptors that the parent has closed, so that no other file gets their numbers."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
