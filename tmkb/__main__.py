"""``python -m tmkb``: the same as the command ``tmkb``."""

import sys

from tmkb.cli.main import main

sys.exit(main())
