"""Python imports this module at its start if this folder is in PYTHONPATH: processes then imitate another system."""

import os

if os.environ.get("IMITATED_SYSTEM"):
    import imitated_system

    imitated_system.install(os.environ["IMITATED_SYSTEM"])
