"""Only files beneath a folder can be opened, also while names are swapped."""

import contextlib
import errno
import os

import pytest

from tests.sysmcp.trees import plant, swapping
from tmkb.sysmcp.files import beneath

pytestmark = pytest.mark.skipif(not beneath.IS_SUPPORTED, reason="files are served on Linux only")

TRIES = 20_000
WAYS = {
    "by the kernel": lambda root, names, flags: beneath.open_by_kernel(root, names, flags, False),
    "by the kernel, with links": lambda root, names, flags: beneath.open_by_kernel(root, names, flags, True),
    "by name": beneath.open_by_name,
}


@pytest.fixture(params=WAYS)
def way(request):
    if "kernel" in request.param:
        try:
            with beneath.closing_fd(beneath.open_root("/")) as fd:
                os.close(beneath.open_by_kernel(fd, [], beneath.FOLDER, False))
        except OSError as error:
            pytest.skip(f"openat2: {error.strerror}")
    return WAYS[request.param]


@pytest.fixture
def outside(tmp_path):
    plant(tmp_path, "outside/file", text="secret\n")
    return tmp_path / "outside"


@pytest.fixture
def root(tmp_path, outside):
    plant(tmp_path, "root/folder/file")
    folder = tmp_path / "root"
    (folder / "link").symlink_to(outside)
    (folder / "up").symlink_to("../outside")
    (folder / "near").symlink_to("folder")
    (folder / "lost").symlink_to("../nowhere")
    (folder / "magic").symlink_to("/proc/self/root")
    (folder / "loop").symlink_to("loop")
    (folder / "folder" / "link").symlink_to(outside / "file")
    return folder


@pytest.fixture
def held(root):
    with beneath.closing_fd(beneath.open_root(str(root))) as fd:
        yield fd


def read(fd):
    with beneath.closing_fd(fd):
        return os.read(fd, 100)


def test_inner_files_are_opened(way, held):
    assert read(way(held, ["folder", "file"], beneath.READ)) == b"inside\n"
    with beneath.closing_fd(way(held, [], beneath.FOLDER)) as itself:
        assert os.path.samestat(os.fstat(itself), os.fstat(held))


@pytest.mark.parametrize("link", ["link", "up", "lost", "magic", "loop"])
def test_no_link_leads_outside(way, held, link):
    for names, flags in [
        ([link, "file"], beneath.READ),
        ([link, "none"], beneath.INSPECT),
        ([link], beneath.READ),
    ]:
        with pytest.raises(OSError) as raised:
            way(held, names, flags)
        assert raised.value.errno in (errno.ELOOP, errno.EXDEV)


def test_a_link_is_opened_itself(way, held):
    with beneath.closing_fd(way(held, ["folder", "link"], beneath.INSPECT)) as fd:
        assert os.readlink("", dir_fd=fd).endswith("/outside/file")


def test_an_inner_link_is_followed_only_with_follow(held):
    if read_through(held, follow=True) is None:
        pytest.skip("no openat2")
    assert read_through(held, follow=True) == b"inside\n"
    assert read_through(held, follow=False) is None
    with beneath.closing_fd(beneath.open_below(held, ["near"], beneath.FOLDER, True)) as fd:
        assert "file" in os.listdir(fd)


def read_through(held, follow):
    with contextlib.suppress(OSError):
        return read(beneath.open_below(held, ["near", "file"], beneath.READ, follow))


def test_files_are_opened_by_name_without_openat2(held, monkeypatch):
    monkeypatch.setattr(beneath, "_OPENAT2", 100_000)  # no such call

    with pytest.raises(OSError, match="not implemented"):
        beneath.open_by_kernel(held, ["folder", "file"], beneath.READ, False)
    assert read(beneath.open_below(held, ["folder", "file"], beneath.READ, False)) == b"inside\n"
    assert read_through(held, follow=True) is None  # what cannot be made sure of is not done


def test_a_hard_link_lies_where_its_name_is(way, held, root, outside):
    os.link(outside / "file", root / "hard")

    assert read(way(held, ["hard"], beneath.READ)) == b"secret\n"


def test_a_pipe_without_a_writer_does_not_block(way, held, root):
    os.mkfifo(root / "pipe")

    os.close(way(held, ["pipe"], beneath.READ))


def test_descriptors_are_not_handed_to_children(way, held):
    with beneath.closing_fd(way(held, ["folder", "file"], beneath.READ)) as fd:
        assert not os.get_inheritable(fd)


def test_descriptors_are_closed(way, held):
    before = os.listdir("/proc/self/fd")
    os.close(way(held, ["folder", "file"], beneath.READ))
    for names in (["folder", "none"], ["folder", "file", "x"], ["link", "file"]):
        with pytest.raises(OSError):
            way(held, names, beneath.READ)

    assert os.listdir("/proc/self/fd") == before


def leaks(opening, tries, enough=TRIES):
    """Open repeatedly while names are swapped; count the files opened inside, outside, and failures."""
    seen = {b"inside\n": 0, b"secret\n": 0, None: 0}
    for _ in range(tries):
        try:
            text = read(opening())
        except OSError:
            text = None
        seen[text] += 1
        if seen[b"secret\n"] >= enough:
            break
    return seen


@pytest.mark.process
@pytest.mark.parametrize("names", [("folder", "link"), ("folder/file", "folder/link")])
def test_swapping_names_gives_no_access_outside(way, held, root, names):
    with swapping(*[root / name for name in names]):
        seen = leaks(lambda: way(held, ["folder", "file"], beneath.READ), TRIES)

    assert seen[b"secret\n"] == 0
    assert seen[b"inside\n"] > 0 and seen[None] > 0  # the names were exchanged meanwhile


@pytest.mark.process
def test_the_exchange_of_names_finds_who_looks_first_and_opens_then(root):
    def naive():
        path = root / "folder" / "file"
        if not os.path.realpath(path).startswith(f"{root}/"):
            raise PermissionError
        return os.open(path, os.O_RDONLY)

    with swapping(root / "folder", root / "link"):
        seen = leaks(naive, 100 * TRIES, enough=1)

    assert seen[b"secret\n"] == 1
