"""``tap.py LOG COMMAND…``: stands between a client and a server and writes down each line that the client sends."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(log, *command):
    """Copy stdin to the command and to the file ``log``; stdout and stderr are the command's own."""
    here = {**os.environ, "PYTHONPATH": ROOT}  # some clients hand on little of their environment
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=here) as server, open(log, "ab", buffering=0) as copy:
        for line in sys.stdin.buffer:
            copy.write(line)
            server.stdin.write(line)
            server.stdin.flush()
        server.stdin.close()
    return server.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
