"""``tap.py LOG COMMAND…``: stands between a client and a server and writes down each line that the client sends."""

import subprocess
import sys


def main(log, *command):
    """Copy stdin to the command and to the file ``log``; stdout and stderr are the command's own."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server, open(log, "ab", buffering=0) as copy:
        for line in sys.stdin.buffer:
            copy.write(line)
            server.stdin.write(line)
            server.stdin.flush()
        server.stdin.close()
    return server.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
