"""Processes that imitate Windows or macOS on Linux: start them with the variables of `environment`."""

import os

SYSTEMS = ("win32", "darwin")  # as `sys.platform`
FOLDER = os.path.dirname(os.path.abspath(__file__))


def environment(system):
    """The variables for a process that imitates ``system``, and for its children; none for `linux`."""
    if system == "linux":
        return {}
    folders = [FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"IMITATED_SYSTEM": system, "PYTHONPATH": os.pathsep.join(folders)}
