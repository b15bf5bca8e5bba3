"""Start TMKB from an MCP bundle, whose folder `lib` has its packages."""

import os
import sys

BUILT_FOR = ""  # the version of Python and the platform of compiled packages; `deploy/bundle.py` sets it
FOUND = "%d.%d" % sys.version_info[:2]

if sys.version_info < (3, 11):
    sys.exit(
        "TMKB needs Python 3.11 or newer, and %s is Python %s. Install the bundle for uv." % (sys.executable, FOUND)
    )
if BUILT_FOR and not BUILT_FOR.startswith(FOUND + " "):
    sys.exit(
        "This bundle is for Python %s, and %s is Python %s. Install the bundle for uv."
        % (BUILT_FOR, sys.executable, FOUND)
    )

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

from tmkb.cli.main import main

sys.exit(main(["serve", *sys.argv[1:]]))
