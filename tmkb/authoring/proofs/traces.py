"""Undo what a case has left in its process, so that the next case in the same process does not see it.

`Memory` compares and restores the objects that a pattern's modules can reach, `Files` a folder. Objects of the
libraries in `_LIBRARIES` are left out: their state is a cache, or belongs to one request.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import os
import random
import re
import stat
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from operator import is_
from pathlib import PurePath
from typing import Any, NamedTuple

_LIBRARIES = {
    *("celery", "click", "django", "fastapi", "flask", "flask_login", "flask_sqlalchemy", "graphql", "jinja2"),
    *("kombu", "logging", "sqlalchemy", "starlette", "typing", "werkzeug"),
}
_CONSTANT = (
    *(str, bytes, int, float, complex, type(None), type(...), type(NotImplemented), date, time, timedelta, tzinfo),
    *(Decimal, PurePath, range, slice, re.Pattern),
    *(types.CodeType, types.ModuleType, types.GenericAlias, types.UnionType),
    *(types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
    *(types.WrapperDescriptorType, types.MethodWrapperType, types.GetSetDescriptorType, types.MemberDescriptorType),
    *(weakref.ref, weakref.ProxyType, type(threading.Lock()), type(threading.RLock())),
)
# They change without a change of what they refer to.
_UNSEEN = (Iterator, types.CoroutineType, types.AsyncGeneratorType, random.Random)
_UNSEEN_NAMES = {"Session", "scoped_session", "Connection"}  # of SQLAlchemy
_Cache = type(functools.cache(abs))
_HAS_REFERENTS = 1 << 14  # Py_TPFLAGS_HAVE_GC


class _Node(NamedTuple):
    """An object, what it contained, a function that returns what it contains now, and one that puts it back."""

    obj: Any
    content: list[Any]
    read: Callable[[Any], Iterable[Any]]
    write: Callable[[Any, list[Any]], object] | None


class Memory:
    """The objects that can be reached from some roots, with their content at one moment."""

    def __init__(self, roots: Iterable[Any], modules: Iterable[types.ModuleType]) -> None:
        """``modules``: those of the pattern; of other modules only objects that these refer to are considered."""
        self._names = {module.__name__ for module in modules}
        self._nodes: list[_Node] = []
        self._random = random.getstate()
        self.complete = True  # False if an object has state that cannot be compared
        self._walk([*roots, *map(vars, modules)])

    def adopt(self, module: types.ModuleType, names: Iterable[str], functions: Iterable[types.FunctionType]) -> None:
        """Take over what has been exchanged since then: the values of some ``names``, and the code of ``functions``."""
        names, exchanged = {*names}, {id(function) for function in functions}
        values = {name: value for name, value in vars(module).items() if name in names}
        for node in self._nodes:
            if node.obj is vars(module):
                pairs = zip(node.content[::2], node.content[1::2], strict=True)
                kept = [(name, value) for name, value in pairs if name not in names]
                node.content[:] = [part for item in (*kept, *values.items()) for part in item]
            elif id(node.obj) in exchanged:
                node.content[:] = node.read(node.obj)
        self._walk([value for value in values.values() if not self._is_left_out(value)])

    def restore(self) -> bool:
        """Put the content of all containers back; return False if this is not possible."""
        random.setstate(self._random)
        if not self.complete:
            return False
        for obj, content, read, write in self._nodes:
            now = list(read(obj))
            if len(now) != len(content) or not all(map(is_, now, content)):
                if write is None:
                    return False
                write(obj, content)
        return True

    def _walk(self, stack: list[Any]) -> None:
        seen = {id(vars(builtins)), *(id(node.obj) for node in self._nodes)}
        while stack:
            obj = stack.pop()
            if id(obj) in seen:
                continue
            seen.add(id(obj))
            kind = type(obj)
            if issubclass(kind, _UNSEEN) or not kind.__flags__ & _HAS_REFERENTS or _is_session(kind):
                self.complete = False
                continue
            if not issubclass(kind, type):
                with contextlib.suppress(AttributeError):
                    stack.append(obj.__dict__)  # which also creates it, so that it is among the referents from now on
            read, write = _access(obj)
            content = list(read(obj))
            self._nodes.append(_Node(obj, content, read, write))
            stack += [each for each in content if not self._is_left_out(each)]

    def _is_left_out(self, obj: Any) -> bool:
        kind = type(obj)
        if issubclass(kind, _CONSTANT) or (kind.__basicsize__ == object.__basicsize__ and not kind.__dictoffset__):
            return True  # it has no state
        if issubclass(kind, type | _Cache):
            return obj.__module__ not in self._names
        return kind.__module__.partition(".")[0] in _LIBRARIES and not _is_session(kind)


def _is_session(kind: type) -> bool:
    return kind.__name__ in _UNSEEN_NAMES and kind.__module__.startswith("sqlalchemy.")


def _access(obj: Any) -> tuple[Callable[[Any], Iterable[Any]], Callable[[Any, list[Any]], object] | None]:
    """Return the functions that read and write the content of ``obj``."""
    kind = type(obj)
    if issubclass(kind, type):
        return _attributes, None
    if issubclass(kind, types.FunctionType):
        return _bound, None
    return next((access for base, access in _ACCESS.items() if issubclass(kind, base)), (gc.get_referents, None))


def _attributes(cls: type) -> list[Any]:
    return [part for item in vars(cls).items() for part in item]


def _bound(function: types.FunctionType) -> list[Any]:
    """Return what a function has besides its globals, which are those of a module."""
    return [function.__code__, function.__defaults__, function.__kwdefaults__, function.__closure__, function.__dict__]


def _pairs(mapping: dict[Any, Any]) -> list[Any]:
    return [part for item in dict.items(mapping) for part in item]


def _write_pairs(mapping: dict[Any, Any], content: list[Any]) -> None:
    mapping.clear()
    mapping.update(zip(content[::2], content[1::2], strict=True))


def _write_items(items: Any, content: list[Any]) -> None:
    items.clear()
    (items.update if isinstance(items, set) else items.extend)(content)


_ACCESS: dict[type, tuple[Callable[[Any], Iterable[Any]], Callable[[Any, list[Any]], object]]] = {
    dict: (_pairs, _write_pairs),
    list: (iter, _write_items),
    set: (iter, _write_items),
    deque: (iter, _write_items),
}


def sql_listeners() -> int:
    """Return how many listeners for events of SQLAlchemy's sessions and engines there are."""
    from sqlalchemy import event
    from sqlalchemy.engine.events import ConnectionEvents
    from sqlalchemy.orm import SessionEvents

    names = {*vars(ConnectionEvents), *vars(SessionEvents)}  # it adds listeners for other events itself at any time
    return sum(key[1] in names for key in event.registry._key_to_collection)


class Files:
    """The files and folders in a folder, with their content at one moment."""

    def __init__(self, folder: str, besides: str = "") -> None:
        """``besides``: the path of a folder in ``folder`` that somebody else restores."""
        self._folder, self._besides = folder, besides
        self._status = self._now()
        self._contents = {path: _read(path) for path, (mode, *_) in self._status.items() if stat.S_ISREG(mode)}

    def restore(self) -> None:
        """Remove and write files so that the folder is as before."""
        now = self._now()
        if now == self._status:
            return
        changed = [path for path, status in now.items() if status != self._status.get(path)]
        for path in sorted(changed, reverse=True):  # what is in a folder comes before it
            if stat.S_ISDIR(now[path][0]):
                os.rmdir(path)
            else:
                os.remove(path)
        for path, (mode, *_) in sorted(self._status.items()):
            if stat.S_ISDIR(mode):
                os.makedirs(path, exist_ok=True)
            elif path in changed or path not in now:
                with open(path, "wb") as file:
                    file.write(self._contents[path])
        self._status = self._now()

    def _now(self) -> dict[str, tuple[int, int, int]]:
        """Return mode, size in bytes and time of each file; those of a folder change with what is in it."""
        found = {}
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [name for name in folders if os.path.join(folder, name) != self._besides]
            for path in (os.path.join(folder, name) for name in (*folders, *files)):
                mode, size, modified = (status := os.lstat(path)).st_mode, status.st_size, status.st_mtime_ns
                found[path] = (mode, 0, 0) if stat.S_ISDIR(mode) else (mode, size, modified)
        return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
