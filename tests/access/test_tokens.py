"""Access tokens: which are accepted, and why others are not."""

import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jwk, jws

from tests.support import issuer
from tests.support.issuer import NAME, RESOURCE, claims, encoded, key, token
from tmkb.access.access import Access
from tmkb.access.keys import Key
from tmkb.access.policy import Policy
from tmkb.errors import ProtocolError
from tmkb.protocol.caller import Caller
from tmkb.schema import reader

pytestmark = [pytest.mark.needs("jwt"), pytest.mark.needs("joserfc")]

LIMITS = {
    "token_bytes": 16384,
    "keys_bytes": 262144,
    "keys_seconds": 300,
    "keys_retry_seconds": 10,
    "keys_timeout_seconds": 5,
}
ROLES = {
    "reader": {"granted_by": [{"scopes": ["tmkb:read"]}], "tools": ["read_*"]},
    "writer": {"granted_by": [{"scopes": ["tmkb:read", "tmkb:write"]}], "tools": ["*"]},
    "staff": {"granted_by": [{"claims": {"realm_access.roles": ["staff"]}, "issuer": NAME}], "prompts": ["*"]},
}


def policy(roles=None, **entry):
    value = {
        "kind": "access",
        "resource": RESOURCE,
        "issuers": [{"issuer": NAME, **entry}],
        "roles": ROLES if roles is None else roles,
    }
    return Policy(reader.parse(json.dumps(value), "access.yaml"))


def access(*keys, roles=None, **entry):
    """The decisions of an access file, with ``keys`` as those of the issuer."""
    made = Access(policy(roles, **entry), LIMITS, lambda *_, **__: None)
    made._tokens.issuers[NAME].keys.all = [Key(each) for each in issuer.public(*(keys or [key("one")]))]
    return made


def error(made, text):
    with pytest.raises(ProtocolError) as caught:
        made.admit(text)
    return caught.value.error


def test_a_valid_token_gives_the_principal_scopes_and_roles():
    caller = access().admit(token(scope="tmkb:read other"))

    assert caller.principal == f"{NAME} alice"
    assert caller.scopes == {"tmkb:read", "other"}
    assert caller.roles == ("reader",)


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize(
    ("algorithm", "kind", "size"),
    [
        ("RS256", "RSA", 2048),
        ("PS256", "RSA", 2048),
        ("ES256", "EC", "P-256"),
        ("ES384", "EC", "P-384"),
        ("EdDSA", "OKP", "Ed25519"),
    ],
)
def test_signatures_of_permitted_algorithms_are_verified(algorithm, kind, size):
    signer = key(f"of {kind} {size}", kind, size)
    made = access(signer, algorithms=[algorithm])

    assert made.admit(token(signer, algorithm)).principal.endswith(" alice")
    forged = token(signer, algorithm, subject="mallory").split(".")
    genuine = token(signer, algorithm).split(".")
    assert error(made, f"{genuine[0]}.{forged[1]}.{genuine[2]}") == "token_signature"


NOW = int(time.time())
REFUSED = {
    "expired": (lambda: token(exp=NOW - 100), "token_expired"),
    "without an expiry": (lambda: token(exp=None), "token_claims"),
    "with an expiry of another type": (lambda: token(exp="soon"), "token_claims"),
    "with an expiry in words and digits": (lambda: token(exp="9" * 5000), "token_claims"),
    "with an infinite expiry": (lambda: genuine(json.dumps(claims()).replace('"exp": ', '"exp": 1e999, "e": ')), "token_claims"),
    "not valid yet": (lambda: token(nbf=NOW + 10_000), "token_early"),
    "issued in the future": (lambda: token(iat=NOW + 10_000), "token_early"),
    "for another resource": (lambda: token(aud="https://other.example/mcp"), "token_audience"),
    "for a resource whose name is longer": (lambda: token(aud=f"{RESOURCE}/other"), "token_audience"),
    "for no resource": (lambda: token(aud=None), "token_claims"),
    "of another issuer": (lambda: token(iss="https://evil.example"), "token_issuer"),
    "of an issuer whose name is longer": (lambda: token(iss=f"{NAME}/"), "token_issuer"),
    "of a list of issuers": (lambda: token(iss=[NAME]), "token_issuer"),
    "of no issuer": (lambda: token(iss=None), "token_issuer"),
    "for nobody": (lambda: token(sub=None), "token_claims"),
    "for an empty subject": (lambda: token(subject=""), "token_claims"),
    "for a list of subjects": (lambda: token(subject=["alice"]), "token_claims"),
    "for a subject with a line feed": (lambda: token(subject="alice\nAudit: caller=bob"), "token_claims"),
    "for a very long subject": (lambda: token(subject="a" * 256), "token_claims"),
    "with an unknown key": (lambda: token(key("two")), "token_key"),
    "with the id of another key": (lambda: token(key("two"), header={"kid": "one"}), "token_signature"),
    "with a path as the id": (lambda: token(header={"kid": "../../../../dev/null"}), "token_key"),
    "with an id of another type": (lambda: signed(claims(), {"alg": "ES256", "kid": ["one"]}), "token_malformed"),
    "with a key of its own": (lambda: token(key("two"), header={"kid": "one", "jwk": key("two").as_dict(private=False)}), "token_signature"),
    "with the URL of a key": (lambda: token(key("two"), header={"kid": "one", "jku": "https://evil.example/keys"}), "token_signature"),
    "with a critical extension": (lambda: signed(claims(), {"alg": "ES256", "kid": "one", "crit": ["b64"], "b64": False}), "token_malformed"),
    "with another critical extension": (lambda: signed(claims(), {"alg": "ES256", "kid": "one", "crit": ["x"], "x": 1}), "token_malformed"),
    "without a signature": (lambda: issuer.unsigned() + "AA", "token_algorithm"),
    "with an empty signature": (issuer.unsigned, "token_malformed"),
    "with an HMAC of the public key": (lambda: issuer.with_hmac(key("one").as_pem(private=False)), "token_algorithm"),
    "with an algorithm that is not permitted": (lambda: token(key("384", size="P-384"), "ES384"), "token_algorithm"),
    "with a list of algorithms": (lambda: signed(claims(), {"alg": ["ES256"], "kid": "one"}), "token_algorithm"),
    "no JWT": (lambda: "secret", "token_malformed"),
    "empty": (lambda: "", "token_malformed"),
    "two of them": (lambda: f"{token()}, Bearer {token()}", "token_malformed"),
    "of two parts": (lambda: token().rpartition(".")[0], "token_malformed"),
    "of four parts": (lambda: f"{token()}.AAAA", "token_malformed"),
    "with characters that decoders may skip": (lambda: token().replace(".", "\n.", 1), "token_malformed"),
    "with an array of claims": (lambda: signed([]), "token_malformed"),
    "with claims that are not JSON": (lambda: signed(b"\xff"), "token_malformed"),
    "with deep claims": (lambda: signed(b"[" * 3000), "token_malformed"),
    "very long": (lambda: token(more="a" * 20000), "token_malformed"),
}  # fmt: skip


def signed(body, header=None):
    """A token with any header and body; the signature is not valid."""
    body = body.encode() if isinstance(body, str) else body
    return f"{encoded(header or {'alg': 'ES256', 'kid': 'one'})}.{encoded(body)}.{encoded(b'0' * 64)}"


def genuine(body):
    """A token with any body and a valid signature."""
    return jws.serialize_compact({"alg": "ES256", "kid": "one"}, body.encode(), key("one"))


@pytest.mark.parametrize("name", REFUSED)
def test_other_tokens_are_refused(name):
    text, expected = REFUSED[name]

    assert error(access(), text()) == expected


def test_a_public_key_of_an_rsa_issuer_is_no_secret_for_an_hmac():
    signer = key("rsa", "RSA", 2048)
    made = access(signer, algorithms=["RS256"])

    for secret in (signer.as_pem(private=False), json.dumps(signer.as_dict(private=False)).encode()):
        assert error(made, issuer.with_hmac(secret)) == "token_algorithm"


def test_the_leeway_bridges_clocks_that_differ():
    assert access().admit(token(exp=int(time.time()) - 10, nbf=int(time.time()) + 10))
    assert error(access(leeway_seconds=0), token(exp=int(time.time()) - 10)) == "token_expired"


def test_an_audience_can_be_one_of_several():
    assert access(audience=["api://tmkb", RESOURCE]).admit(token(aud=["x", "api://tmkb"]))
    assert error(access(audience=["api://tmkb"]), token()) == "token_audience"


@pytest.mark.parametrize("type_", ["at+jwt", "AT+JWT", "application/at+jwt"])
def test_the_type_of_tokens_can_be_required(type_):
    assert access(types=["at+jwt"]).admit(token(header={"typ": type_}))
    for header in ({"typ": "JWT"}, {}):
        assert error(access(types=["at+jwt"]), token(header=header)) == "token_type"


def test_a_token_without_a_key_id_needs_an_issuer_with_one_key_for_it():
    without = token(header={"kid": None})

    assert access(key("one"), key("rsa", "RSA", 2048)).admit(without)
    assert error(access(key("one"), key("two")), without) == "token_key"


def test_keys_with_one_id_are_told_apart_by_their_type():
    long, elliptic = key("same", "RSA", 2048), key("same")
    made = access(long, elliptic)

    assert made.admit(token(long, "RS256"))
    assert made.admit(token(elliptic))


@pytest.mark.parametrize(
    "change",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "none"},
        {"d": "AA"},
        {"x": 5},
        {"crv": "P-999"},
    ],
)
def test_keys_that_are_not_public_keys_for_signatures_are_not_used(change):
    with pytest.raises(ValueError, match="not "):
        Key({**issuer.public(key("one"))[0], **change})


@pytest.mark.filterwarnings("ignore:Key size")
def test_short_rsa_keys_are_not_used():
    with pytest.raises(ValueError, match="too short"):
        Key(jwk.RSAKey.import_key(rsa.generate_private_key(65537, 1024).public_key()).as_dict())


def test_a_key_is_only_used_with_its_algorithm():
    described = {**issuer.public(key("rsa", "RSA", 2048))[0], "alg": "PS256"}

    assert [Key(described).fits(algorithm) for algorithm in ("PS256", "RS256", "ES256")] == [True, False, False]
    assert [Key(issuer.public(key("one"))[0]).fits(algorithm) for algorithm in ("ES256", "ES384", "EdDSA")] == [
        True,
        False,
        False,
    ]


def test_another_claim_can_be_the_principal():
    assert access(principal="email").admit(token(email="a@x.example")).principal == f"{NAME} a@x.example"
    assert error(access(principal="email"), token()) == "token_claims"


def test_only_spaces_separate_scopes():
    caller = access().admit(token(scope="tmkb:read  a\u00a0tmkb:write"))

    assert caller.scopes == {"tmkb:read", "a\u00a0tmkb:write"}


def test_scopes_can_be_a_list_in_another_claim():
    caller = access(scopes="scp").admit(token(scope="tmkb:write", scp=["tmkb:read", 7]))

    assert caller.scopes == {"tmkb:read"}


def test_roles_come_from_scopes_and_claims():
    made = access()

    assert made.admit(token(scope="tmkb:read tmkb:write")).roles == ("reader", "writer")
    assert made.admit(token(scope="", realm_access={"roles": ["staff"]})).roles == ("staff",)
    assert error(made, token(scope="tmkb:write", realm_access={"roles": "no"})) == "insufficient_scope"


def test_a_role_of_one_issuer_is_not_granted_by_another():
    roles = {"staff": {"granted_by": [{"claims": {"groups": ["staff"]}, "issuer": "https://other.example"}]}}

    assert error(access(roles=roles), token(groups=["staff"])) == "insufficient_scope"


def test_principals_of_two_issuers_differ():
    other = "https://login.example/realms"
    made = Access(
        Policy(reader.parse(json.dumps({**policy().value, "issuers": [{"issuer": NAME}, {"issuer": other}]}), "f")),
        LIMITS,
        lambda *_, **__: None,
    )
    for entry in made._tokens.issuers.values():
        entry.keys.all = [Key(each) for each in issuer.public(key("one"))]
    principals = {
        made.admit(token(iss=iss, subject=sub)).principal for iss in (NAME, other) for sub in ("a", "/acme a")
    }

    assert len(principals) == 4


def test_a_checked_token_is_not_checked_again_until_it_expires(monkeypatch):
    made = access(leeway_seconds=0)
    text = token()
    caller = made.admit(text)
    checks, check = [], made._tokens.check
    monkeypatch.setattr(made._tokens, "check", lambda token: checks.append(token) or check(token))

    assert made.admit(text) is caller
    assert not checks
    made._checked = dict.fromkeys(made._checked, Caller(expires=NOW - 1))
    assert made.admit(text) == caller
    assert checks == [text]


def test_a_checked_token_is_checked_again_when_the_keys_change():
    made = access()
    text = token()
    made.admit(text)
    made._tokens.issuers[NAME].keys._receive([Key(each) for each in issuer.public(key("two"))], "")

    assert error(made, text) == "token_key"


def test_checked_tokens_take_a_bounded_amount_of_memory(monkeypatch):
    from tmkb.access import access as module

    monkeypatch.setattr(module, "_MAX_CHECKED", 3)
    made = access()
    for number in range(5):
        made.admit(token(jti=str(number)))

    assert len(made._checked) == 3
