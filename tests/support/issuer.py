"""An authorization server for tests: keys that rotate, tokens, and an HTTP server with metadata and keys."""

import base64
import contextlib
import functools
import hashlib
import hmac
import http.server
import json
import threading
import time
import urllib.parse

from joserfc import jwk, jws

RESOURCE = "https://tmkb.example/mcp"
NAME = "https://login.example/realms/acme"


@functools.cache
def key(id_, kind="EC", size="P-256"):
    """A private key with this id."""
    kinds = {"EC": jwk.ECKey, "RSA": jwk.RSAKey, "OKP": jwk.OKPKey}
    return kinds[kind].generate_key(size, parameters={"kid": id_}, auto_kid=False)


def public(*keys):
    """The key set of ``keys``, as JWKs."""
    return [each.as_dict(private=False) for each in keys]


def encoded(value):
    """A value as base64url, without padding."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(subject="alice", scope="tmkb:read", issuer=NAME, **other):
    """The claims of a valid token, or with others; a claim that is None is left out."""
    now = int(time.time())
    whole = {"iss": issuer, "sub": subject, "aud": RESOURCE, "scope": scope, "iat": now, "exp": now + 600, **other}
    return {name: value for name, value in whole.items() if value is not None}


def token(by=None, algorithm="ES256", header=None, **named):
    """A token signed with the key ``by``; ``named`` are its claims."""
    by = by or key("one")
    head = {"alg": algorithm, "kid": by.kid, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    body = json.dumps(claims(**named)).encode()
    return jws.serialize_compact(head, body, by, algorithms=[algorithm])


def unsigned(**named):
    """A token with the algorithm none."""
    return f"{encoded({'alg': 'none', 'kid': 'one'})}.{encoded(claims(**named))}."


def with_hmac(secret, **named):
    """A token whose signature is an HMAC with ``secret``, such as a public key."""
    signed = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(claims(**named))}"
    return f"{signed}.{encoded(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


class Issuer:
    """An HTTP server with the metadata of an authorization server and its keys, in a thread."""

    def __init__(self, *keys, path=""):
        self.keys = public(*(keys or [key("one")]))
        self.path = path
        self.requests = []  # paths
        self.granted = []  # the form of each request for a token
        self.bodies = {}  # path → body, instead of the usual one
        self.statuses = {}  # path → status and headers, instead of 200
        self.release = threading.Event()  # of requests to paths in `slow`
        self.slow = set()
        self.dripping = {}  # path → the start of a response, after which single bytes follow until `release`
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                if self.path in outer.slow:
                    outer.release.wait(30)
                if self.path in outer.dripping:
                    self.drip(outer.dripping[self.path])
                    return
                status, headers = outer.statuses.get(self.path, (200 if self.path in outer.documents else 404, {}))
                body = outer.bodies.get(self.path) or json.dumps(outer.documents.get(self.path)).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in {"content-length": str(len(body)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def drip(self, start):
                with contextlib.suppress(OSError):
                    self.wfile.write(start)
                    while not outer.release.wait(0.02):
                        self.wfile.write(b"1")

            def do_POST(self):
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                outer.granted.append({name: values[0] for name, values in form.items()})
                scope, resource = outer.granted[-1].get("scope", ""), outer.granted[-1].get("resource")
                granted = {
                    "access_token": outer.token(scope=scope, aud=resource),
                    "token_type": "Bearer",
                    "expires_in": 600,
                }
                body = json.dumps({**granted, "scope": scope}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def base(self):
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def name(self):
        """Its identifier."""
        return f"{self.base}{self.path}"

    @property
    def jwks(self):
        """The URL of its keys."""
        return f"{self.base}/keys"

    @property
    def documents(self):
        """Path → JSON."""
        endpoints = {"authorization_endpoint": f"{self.base}/authorize", "token_endpoint": f"{self.base}/token"}
        metadata = {"issuer": self.name, "jwks_uri": self.jwks, "response_types_supported": ["code"], **endpoints}
        return {f"/.well-known/oauth-authorization-server{self.path}": metadata, "/keys": {"keys": self.keys}}

    def token(self, by=None, **named):
        """A token of this issuer."""
        return token(by, **{"issuer": self.name, **named})

    def stop(self):
        """End it; connections are refused from now on."""
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
