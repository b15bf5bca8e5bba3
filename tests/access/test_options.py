"""The options of `tmkb serve` for access: what they refuse, before anything is served."""

import argparse
import json
import sys

import pytest

from tests.support.issuer import NAME, RESOURCE
from tmkb.cli import listen, serve
from tmkb.errors import SpecError
from tmkb.schema import problems

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def refused(tmp_path, found, quiet):
    """The problems of an access file and a file of tokens; None for no file."""

    def told(access, tokens):
        paths = []
        for name, text in (("access.yaml", access and json.dumps({"kind": "access", **access})), ("tokens", tokens)):
            if text is not None:
                (tmp_path / name).write_text(text)
            paths.append(None if text is None else str(tmp_path / name))
        options = argparse.Namespace(access=paths[0], auth_tokens=paths[1], allow_host=[], allow_origin=[])
        with pytest.raises(SpecError) as caught:
            listen._guard(options, found, quiet(found.spec))
        return [problems.line(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]

    return told


READER = {"roles": {"reader": {"tools": ["*"]}}}


def test_a_role_needs_an_access_file(refused):
    (line,) = refused(None, f"{DIGEST} reader\n")

    assert line.startswith("tokens:1:1: This line names a role. Add --access FILE")


def test_a_role_of_a_token_has_to_exist(refused):
    assert refused(READER, f"# ours\n{DIGEST} raeder\n") == [
        "tokens:2:1: There is no role 'raeder'. Did you mean 'reader'?"
    ]


def test_a_token_needs_a_role(refused):
    (line,) = refused(READER, f"{DIGEST}\n")

    assert line.startswith("tokens:1:1: This line names no role, and the access file grants none to everyone.")


def test_somebody_has_to_be_able_to_get_a_token(refused):
    (line,) = refused(READER, None)

    assert line.startswith("--access: The access file names no issuers")


def test_the_folders_of_a_role_have_to_exist(tmp_path):
    file, sources = tmp_path / "access.yaml", ["packaged", "git+https://git.example/patterns", str(tmp_path)]
    options = argparse.Namespace(access=str(file))

    def write(folders):
        file.write_text(json.dumps({"kind": "access", "roles": {"reader": {"patterns": folders}}}))

    write(sources)
    assert serve._views(options) == {"reader": sources}
    write([*sources, str(tmp_path / "nowhere")])
    with pytest.raises(SpecError) as caught:  # also at SIGHUP, where the old roles stay
        serve._views(options)
    (line,) = map(problems.line, caught.value.problems)
    assert line.endswith(f" Folder {tmp_path / 'nowhere'} does not exist. Create it, or use another folder.")


def test_tokens_of_issuers_need_an_extra(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "jwt", None)
    for name in [name for name in sys.modules if name.startswith("tmkb.access.")]:
        monkeypatch.delitem(sys.modules, name)
    (line,) = refused({**READER, "resource": RESOURCE, "issuers": [{"issuer": NAME}]}, None)

    assert line.startswith("--access: This needs the module jwt, which is not installed. Install the extra `auth`: ")


def test_an_old_file_of_tokens_is_valid(tmp_path):
    (tmp_path / "tokens").write_text(f"# ours\n\n{DIGEST.upper()}\n")

    assert listen._tokens(str(tmp_path / "tokens"), None) == {DIGEST: []}


@pytest.fixture
def parsed():
    def parse(*options):
        parser = argparse.ArgumentParser()
        listen.configure(parser)
        parser.add_argument("--metrics")
        return parser.parse_args(options)

    return parse


@pytest.mark.parametrize(
    "option", ["--drain=0", "--grace=0", "--metrics=", "--access=", "--auth-tokens=", "--workers=0"]
)
def test_an_option_of_http_needs_http_also_with_a_value_that_is_0_or_empty(parsed, option):
    with pytest.raises(SpecError) as caught:
        listen._check(parsed(option))

    (line,) = map(problems.line, caught.value.problems)
    assert line.startswith(f"{option.partition('=')[0]}: This option is for servers over HTTP.")


def test_options_of_http_are_not_requested_by_default(parsed):
    assert not listen.requested(parsed())


@pytest.mark.parametrize("option", ["--access=", "--auth-tokens="])
def test_an_empty_path_never_turns_authentication_off(parsed, found, quiet, option):
    with pytest.raises(SpecError):
        listen._guard(parsed("--http", "127.0.0.1:0", option), found, quiet(found.spec))
