"""Run ``tmkb`` as on a system that cannot poll (Windows): ``python -m tests.support.unpolled serve``.

Nothing of `select` is left but what Windows has for sockets. Only the question whether a pipe's reader has gone, which
Windows answers by a function of its own, is answered by the poll that was taken away.
"""

import select
import sys

poll, events = select.poll, select.POLLERR | select.POLLHUP
for name in [name for name in vars(select) if "poll" in name.lower() or name == "PIPE_BUF"]:
    delattr(select, name)

from tmkb.cli.main import main  # noqa: E402
from tmkb.transport import threads  # noqa: E402


def reader_gone(fd):
    """What `threads.reader_gone` finds out on Windows."""
    poller = poll()
    poller.register(fd, 0)
    return any(found & events for _, found in poller.poll(0))


threads.reader_gone = reader_gone
sys.exit(main())
