"""The table of states of a connection, read. What is in neither of a state's maps gets its ``otherwise``."""

from __future__ import annotations

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.schema.model import Lifecycle


def after(lifecycle: Lifecycle, state: str, method: str) -> str:
    """The state that accepting ``method`` in ``state`` leads to. Raises ProtocolError where it is refused."""
    row = lifecycle["states"][state]
    accepts, refuses = row.get("accepts", {}), row.get("refuses", {})
    if method in accepts:
        return accepts[method]
    if method in refuses:
        raise ProtocolError(refuses[method])
    if "*" in accepts:
        return accepts["*"]
    raise ProtocolError(row["otherwise"])
