"""TMKB: authorization threat patterns for coding agents, served over the Model Context Protocol.

The public API for programs that embed a server or add a provider; docs/embedding.md shows its use. Names are imported
when they are first used.
"""

__version__ = "0.1.0"
__all__ = [
    "Connection",
    "InvalidArguments",
    "Problem",
    "Provider",
    "Result",
    "Server",
    "SpecError",
    "ToolError",
    "__version__",
    "describe",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.errors import InvalidArguments, Problem, SpecError, ToolError
    from tmkb.providers.base import Provider
    from tmkb.providers.operation import Result
    from tmkb.schema.problems import line as describe
    from tmkb.server.embedding import Connection
    from tmkb.server.server import Server
else:
    _MODULES = {
        "Connection": "tmkb.server.embedding",
        "InvalidArguments": "tmkb.errors",
        "Problem": "tmkb.errors",
        "Provider": "tmkb.providers.base",
        "Result": "tmkb.providers.operation",
        "Server": "tmkb.server.server",
        "SpecError": "tmkb.errors",
        "ToolError": "tmkb.errors",
        "describe": "tmkb.schema.problems",
    }

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(_MODULES[name]), "line" if name == "describe" else name)
        globals()[name] = value
        return value
