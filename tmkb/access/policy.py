"""The roles of an access file: who has them, and what they grant."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tmkb.access.permissions import KINDS, Permissions, Step, overlaps
from tmkb.errors import Problem, ProtocolError, SpecError
from tmkb.protocol.caller import Caller
from tmkb.schema import metaschema, paths
from tmkb.schema.model import Spec
from tmkb.schema.reader import Document

_EVERYONE = "everyone"
_MAX_SHARED = 1000  # different permissions that are kept; a client chooses the scopes of its tokens
_DIGEST_CHARACTERS = 16  # of a principal in the audit log


class Identity(NamedTuple):
    """Who a token is for. ``issuer`` and ``claims`` are empty for a static token, which may name ``roles``."""

    principal: str
    issuer: str = ""
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = {}
    roles: tuple[str, ...] = ()


class Policy:
    """An access file. `read` checks it."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.value: Mapping[str, Any] = doc.mapping()
        self.roles: Mapping[str, Mapping[str, Any]] = doc.section("roles")
        self._shared: dict[tuple[object, ...], Permissions] = {}

    @property
    def resource(self) -> str:
        """The resource identifier; "" without issuers."""
        return str(self.value.get("resource", ""))

    @property
    def issuers(self) -> list[Mapping[str, Any]]:
        """The entries of the issuers."""
        return [*self.value.get("issuers", ())]

    @property
    def first_scopes(self) -> tuple[str, ...]:
        """The scopes that a client requests first: those of the first role that needs any."""
        return next((scopes for role in self.roles.values() for _, scopes in _conditions(role) if scopes), ())

    def caller(self, identity: Identity, expires: float | None = None) -> Caller:
        """Return the caller with this identity. ``expires``: Unix time at which its token expires.

        Raises:
            ProtocolError: if it has no role.
        """
        held = tuple(name for name, role in self.roles.items() if _has(name, role, identity))
        steps = [
            Step(role, scopes)
            for name, role in self.roles.items()
            if name not in held
            for condition, scopes in _conditions(role)
            if scopes and _is_met(condition, identity)
        ]
        if not held:
            raise ProtocolError("insufficient_scope", kind="server", scopes=[*(steps[0].scopes if steps else ())])
        permissions = self._permissions(held, steps)
        view = next((name for name in held if "patterns" in self.roles[name]), "")
        audited = self._audited(identity.principal)
        return Caller(identity.principal, identity.scopes, held, view, permissions, audited, expires)

    def check(self, spec: Spec) -> None:
        """Raise SpecError if a role grants what the server does not have: probably a misspelled name."""
        problems = [
            self.doc.problem("grants_nothing", ("roles", name, kind, index), kind=kind[:-1], pattern=pattern, **near)
            for name, role in self.roles.items()
            for kind in KINDS
            for index, pattern in enumerate(role.get(kind, ()))
            if (near := _mismatch(spec, kind, pattern)) is not None
        ]
        if problems:
            raise SpecError(problems)

    def check_roles(self, names: Collection[str], file: str, line: int) -> Iterator[Problem]:
        """Yield the problems of the roles in a line of the file with tokens."""
        for name in names:
            if name not in self.roles:
                yield Problem(
                    "unknown_name", file, line, 1, kind="role", name=name, **metaschema.near(name, self.roles)
                )
        if not names and not any(role.get("granted_by") == _EVERYONE for role in self.roles.values()):
            yield Problem("no_role", file, line, 1)

    def _permissions(self, held: tuple[str, ...], steps: list[Step]) -> Permissions:
        key = (held, *((id(step.patterns), step.scopes) for step in steps))
        if (shared := self._shared.get(key)) is not None:
            return shared
        permissions = Permissions([self.roles[name] for name in held], steps)
        if len(self._shared) < _MAX_SHARED:
            self._shared[key] = permissions
        return permissions

    def _audited(self, principal: str) -> str:
        if self.value.get("audit") == "digest":
            return hashlib.sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
        return principal if "audit" in self.value else ""


def read(file: str) -> Policy:
    """Read an access file. Raises SpecError with every problem."""
    doc = metaschema.read(file, os.path.join(paths.SCHEMAS, "meta", "access.yaml"))
    if not_map := metaschema.not_a_map(doc):
        raise SpecError([not_map])
    policy = Policy(doc)
    if problems := [*_check_issuers(policy)]:
        raise SpecError(problems)
    return policy


def views(file: str, exists: Callable[[str], bool]) -> dict[str, list[str]]:
    """Return role → its sources of patterns, for the roles of an access file that have them.

    Raises:
        SpecError: if the file has problems, or a source does not exist: the role would see no patterns.
    """
    policy = read(file)
    found = {name: [*role["patterns"]] for name, role in policy.roles.items() if "patterns" in role}
    missing = [
        policy.doc.problem("no_folder", ("roles", name, "patterns", index), path=source)
        for name, sources in found.items()
        for index, source in enumerate(sources)
        if not exists(source)
    ]
    if missing:
        raise SpecError(missing)
    return found


def _check_issuers(policy: Policy) -> Iterator[Problem]:
    known: list[str] = []
    for index, entry in enumerate(policy.issuers):
        if entry["issuer"] in known:
            yield policy.doc.problem("duplicate_issuer", ("issuers", index, "issuer"), issuer=entry["issuer"])
        known.append(entry["issuer"])
    for name, role in policy.roles.items():
        granted = role.get("granted_by")
        for index, condition in enumerate(granted if isinstance(granted, list) else ()):
            issuer = condition.get("issuer", "")
            if issuer and issuer not in known:
                place = ("roles", name, "granted_by", index, "issuer")
                yield policy.doc.problem(
                    "unknown_name", place, kind="issuer", name=issuer, **metaschema.near(issuer, known)
                )


def _conditions(role: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], tuple[str, ...]]]:
    """Return the conditions of a role, each with the scopes that it requires."""
    granted = role.get("granted_by", [])
    return [] if granted == _EVERYONE else [(each, tuple(each.get("scopes", ()))) for each in granted]


def _has(name: str, role: Mapping[str, Any], identity: Identity) -> bool:
    if name in identity.roles or role.get("granted_by") == _EVERYONE:
        return True
    return any(identity.scopes.issuperset(scopes) and _is_met(each, identity) for each, scopes in _conditions(role))


def _is_met(condition: Mapping[str, Any], identity: Identity) -> bool:
    """Return whether ``identity`` meets ``condition``, apart from its scopes. A static token meets none."""
    if not identity.issuer or condition.get("issuer", identity.issuer) != identity.issuer:
        return False
    return all(
        not values_of(identity.claims, claim).isdisjoint(accepted)
        for claim, accepted in condition.get("claims", {}).items()
    )


def values_of(claims: Mapping[str, Any], name: str) -> set[str]:
    """Return the strings of the claim ``name``: itself, or its entries. Dots also lead into objects."""
    value = claim(claims, name)
    return {each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)}


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return the claim ``name``; None if there is none."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _mismatch(spec: Spec, kind: str, pattern: str) -> dict[str, str] | None:
    """Return the fields of the problem that ``pattern`` matches nothing in ``spec``; None if it matches something."""
    if kind == "resources":
        known: Iterable[str] = [str(each.get("uri") or each.get("uriTemplate")) for each in spec["resources"].values()]
        return (
            None
            if pattern == "*" or any(overlaps(pattern, uri) for uri in known)
            else metaschema.near(pattern, [*known])
        )
    names: Mapping[str, Any] = spec[kind]  # type: ignore[literal-required]
    permissions = Permissions([{kind: [pattern]}])
    return (
        None
        if pattern == "*" or any(permissions.permits(kind, name) for name in names)
        else metaschema.near(pattern, names)
    )
