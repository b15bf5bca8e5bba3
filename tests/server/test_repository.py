"""Git sources: which are accepted, what is fetched and what is kept."""

import os
import subprocess

import pytest

from tests.support.git import Repository, https
from tmkb.errors import SpecError
from tmkb.schema import paths, problems
from tmkb.server import cache, pull, repository, selection

HOST = "git+https://example.com/patterns"


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """A cache folder and a Git configuration of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setattr(paths, "ALIASES", {})
    return tmp_path


@pytest.fixture
def origin(tmp_path):
    made = Repository(tmp_path / "origin")
    made.commit(patterns__note="one\n")
    return made


def refused(text):
    with pytest.raises(SpecError) as raised:
        repository.fetch(repository.parse(text))
    return " ".join(problems.line(problem) for problem in raised.value.problems)


@pytest.mark.parametrize(
    ("text", "url", "ref", "folder"),
    [
        (HOST, "https://example.com/patterns", "HEAD", ""),
        (f"{HOST}.git#main", "https://example.com/patterns.git", "main", ""),
        (
            f"{HOST}#refs/heads/team/a:security/patterns/",
            "https://example.com/patterns",
            "refs/heads/team/a",
            "security/patterns",
        ),
        (f"{HOST}#:security", "https://example.com/patterns", "HEAD", "security"),
        ("git+https://example.com:8443/p#v1.0", "https://example.com:8443/p", "v1.0", ""),
        ("git+ssh://git@example.com/acme/patterns.git#main", "ssh://git@example.com/acme/patterns.git", "main", ""),
        ("git+file:///srv/patterns#main", "file:///srv/patterns", "main", ""),
    ],
)
def test_a_source_names_a_url_a_ref_and_a_folder(text, url, ref, folder):
    source = repository.parse(text)

    assert (source.url, source.ref, source.folder) == (url, ref, folder)


@pytest.mark.parametrize(
    "text",
    [
        "git+ext::sh -c id",
        "git+ext://example.com/x",
        "git+http://example.com/x",
        "git+git://example.com/x",
        "git+https",
        "git+https://example.com",
        "git+https://-oProxyCommand=id/x",
        "git+ssh://-oProxyCommand=id/x",
        "git+ssh://-l@example.com/x",
        "git+ssh://git@example.com:acme/x",
        "git+file://host/x",
        f"{HOST}#--upload-pack=id",
        f"{HOST}#-x",
        f"{HOST}#+main",
        f"{HOST}#main..other",
        f"{HOST}#main^{{}}",
        f"{HOST}#main@{{1}}x y",
        f"{HOST}#main:../../etc",
        f"{HOST}#main:a//b",
        f"{HOST}#main:a/./b",
        f"{HOST}?path=x#main",
        f"{HOST}\n#main",
        f"{HOST}#main:a\u202eb",
    ],
)
def test_other_texts_are_no_sources(text):
    assert "This is not a Git source. Write git+https://HOST/PATH#REF" in refused(text)


def test_a_url_without_git_is_no_folder():
    with pytest.raises(SpecError) as caught:
        selection.of({"": {"patterns": ["https://example.com/acme/patterns.git"]}}, False)
    assert [problem.rule for problem in caught.value.problems] == ["bad_source"]


def test_a_password_in_a_source_is_refused_and_not_shown(monkeypatch):
    message = refused("git+https://alice:s3cret@example.com/x")

    assert message.startswith("git+https://…@example.com/x: Other users can see a password")
    message = refused("git+https://ghp_s3cret@example.com/x")
    assert message.startswith("git+https://…@example.com/x: Other users can see a password or token")
    assert "s3cret" not in refused("git+http://s3cret@example.com/x") + refused("git+HTTPS://s3cret@example.com/x")
    monkeypatch.setenv(repository.TOKEN, "t0ken")
    assert repository.hide_secrets("https://example.com/t0ken and https://a:b@c@example.com/x") == (
        "https://example.com/… and https://…@example.com/x"
    )


def test_a_token_is_given_to_its_host_only_and_is_in_no_argument(monkeypatch):
    monkeypatch.setenv(repository.TOKEN, "t0ken")
    settings = repository._credentials(repository.parse("git+https://example.com:8443/x"))

    assert all(setting.startswith("credential.https://example.com:8443.helper=") for setting in settings)
    assert "t0ken" not in "".join(settings)
    assert repository._credentials(repository.parse("git+ssh://git@example.com/x")) == []


@pytest.mark.process
@pytest.mark.parametrize("fragment", ["", "#main", "#refs/heads/main", "#v1", "#HEAD:patterns", "#{commit}"])
def test_a_commit_is_fetched_and_kept(origin, fragment):
    origin.git("tag", "--annotate", "--message=One", "v1")
    commit = origin.git("rev-parse", "HEAD")
    source = repository.parse(origin.source(fragment.format(commit=commit)))
    version = repository.fetch(source)

    below = "" if "patterns" in fragment else "patterns"
    assert version.commit == commit
    with open(os.path.join(version.files, below, "note")) as note:
        assert note.read() == "one\n"
    assert repository.current(source) is None
    repository.accept(version)
    assert repository.current(source) == version
    assert repository.facts(version.files) == {"source": source.text, "commit": commit, "date": version.date}
    assert paths.shown(os.path.join(version.files, "x.yaml")) == f"{source.text}/x.yaml"


@pytest.mark.process
def test_a_branch_can_be_overwritten_and_deleted(origin):
    origin.git("branch", "team")
    source = repository.parse(origin.source("#team"))
    first = repository.fetch(source)
    repository.accept(first)
    origin.git("checkout", "--quiet", "--orphan", "other")
    second = origin.commit(patterns__note="two\n")
    origin.git("branch", "--force", "team")

    assert repository.fetch(source).commit == second
    origin.git("branch", "-D", "team")
    assert "the repository has no branch and no tag team." in refused(source.text)
    assert repository.current(source) == first


@pytest.mark.process
def test_old_commits_are_removed(origin):
    source = repository.parse(origin.source())
    commits = []
    for number in range(3):
        commits.append(origin.commit(note=str(number)))
        repository.accept(repository.fetch(source))
    home = os.path.dirname(os.path.dirname(repository.fetch(source).files))

    assert {*commits[1:]} == {name for name in os.listdir(home) if len(name) == 40}
    assert [name for name in os.listdir(home) if name.startswith("tmp-")] == []
    assert cache.files() == []  # they are no entries of the start-up cache


@pytest.mark.process
@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "deep/up/.."])
def test_a_link_out_of_the_folder_is_refused(origin, target):
    inside = origin.path / "patterns"
    (inside / "deep").mkdir()
    (inside / "deep" / "up").symlink_to("..")
    (inside / "good").symlink_to("note")
    origin.commit()
    source = origin.source("#main:patterns")
    assert os.path.islink(os.path.join(repository.fetch(repository.parse(source)).files, "good"))
    (inside / "link").symlink_to(target)
    origin.commit()

    assert "the link link leads out of the folder." in refused(source)


@pytest.mark.process
@pytest.mark.parametrize("target", ["", "note\0", "x" * 5000])
def test_a_link_without_a_valid_target_is_refused_and_the_last_good_commit_is_served(origin, target):
    source = repository.parse(origin.source())
    good = repository.fetch(source)
    repository.accept(good)
    origin.link("link", target)

    assert "the link link has no valid target." in refused(source.text)
    chosen, _, lines = pull.start(selection.Selection({}, {source.text: source}, {}), lambda _: {}, 0.0)
    assert chosen.versions == {source.text: good}
    assert "the link link has no valid target" in str(lines)


@pytest.mark.process
def test_a_branch_whose_name_is_not_utf8_is_ignored(origin):
    origin.git("update-ref", os.fsdecode(b"refs/heads/\xff/main"), "HEAD")
    commit = origin.commit(patterns__note="two\n")

    assert repository.fetch(repository.parse(origin.source())).commit == commit


@pytest.mark.process
def test_a_value_that_the_system_refuses_is_an_error_of_the_source(origin, monkeypatch):
    def refuse(*_):
        raise ValueError("embedded null byte")

    monkeypatch.setattr(repository, "_write", refuse)

    assert "Cannot pull: embedded null byte." in refused(origin.source())


@pytest.mark.process
def test_a_long_chain_of_links_is_refused(origin):
    for number in range(1500):
        (origin.path / f"link{number:04}").symlink_to(f"link{number + 1:04}")
    origin.commit()

    assert "leads out of the folder." in refused(origin.source())


@pytest.mark.process
def test_no_program_of_a_repository_or_a_template_runs(origin, private):
    hook = private / "template" / "hooks" / "reference-transaction"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {private}/ran\n")
    hook.chmod(0o755)
    (private / "gitconfig").write_text(
        f'[init]\n\ttemplateDir = {private}/template\n[filter "run"]\n\tsmudge = touch {private}/ran\n'
    )
    origin.commit(patterns___gitattributes="* filter=run ident\n", patterns__ident="$Id$\n")
    (origin.path / ".gitattributes").write_text("* filter=run ident export-ignore\n")
    (origin.path / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ext::touch ran\n')
    origin.commit()
    files = repository.fetch(repository.parse(origin.source())).files

    assert not (private / "ran").exists()
    with open(os.path.join(files, "patterns", "ident")) as text:
        assert text.read() == "$Id$\n"


@pytest.mark.process
def test_size_number_and_time_have_limits(origin, monkeypatch):
    source = origin.source()
    monkeypatch.setattr(repository, "MAX_FILES", 0)
    assert "it has more than 0 files." in refused(source)
    monkeypatch.setattr(repository, "MAX_FILES", 10)
    monkeypatch.setattr(repository, "MAX_BYTES", 3)
    assert "larger than 0 MiB." in refused(source)
    monkeypatch.setattr(repository, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(repository, "SECONDS", 0.5)
    monkeypatch.setenv("GIT_SSH_COMMAND", "sleep 60; false")
    assert "took longer than 0.5 seconds." in refused("git+ssh://git@localhost/x")


@pytest.mark.process
def test_a_message_of_the_remote_host_is_escaped_and_cut(monkeypatch):
    monkeypatch.setenv("GIT_SSH_COMMAND", f"printf 'ssh: \\033[2J\\342\\200\\256{'x' * 5000}\\n' >&2; false")
    message = refused("git+ssh://git@localhost/x")

    assert message.isprintable() and len(message) < 400
    assert "ssh: \\u001b[2J" in message


@pytest.mark.process
@pytest.mark.needs("openssl")
def test_a_token_is_used_over_https_and_never_shown(origin, private, monkeypatch):
    with https(origin, "t0ken$'x", private) as (source, certificate):
        monkeypatch.setenv("GIT_SSL_CAINFO", certificate)
        assert "could not read Username" in refused(source)
        monkeypatch.setenv(repository.TOKEN, "wr0ng")
        assert "wr0ng" not in refused(source)
        monkeypatch.setenv(repository.TOKEN, "t0ken$'x")
        version = repository.fetch(repository.parse(source))

    assert version.commit == origin.git("rev-parse", "HEAD")
    for place, _, names in os.walk(private / "cache"):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                assert b"t0ken" not in file.read()


@pytest.mark.process
def test_a_missing_git_is_reported(origin, monkeypatch):
    monkeypatch.setenv("PATH", ".")

    assert "The program git is not installed. Install it, or use a folder." in refused(origin.source())


@pytest.mark.process
@pytest.mark.needs("ssh-keygen")
def test_only_signed_commits_are_verified(origin, private):
    key = private / "key"
    source = repository.parse(origin.source(), verified=True)
    with pytest.raises(SpecError):
        repository.fetch(source)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (private / "signers").write_text(f"alice@example.com {key.with_suffix('.pub').read_text()}")
    (private / "gitconfig").write_text(
        f'[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tallowedSignersFile = {private}/signers\n'
    )
    origin.git(
        "-c", "gpg.format=ssh", "-c", f"user.signingKey={key}", "commit", "-S", "--allow-empty", "--message=Signed"
    )

    assert repository.fetch(source).commit == origin.git("rev-parse", "HEAD")
