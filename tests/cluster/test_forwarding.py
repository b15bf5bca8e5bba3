"""What a failed connection to another replica says about it."""

import asyncio
import errno
import socket

import pytest

from tmkb.cluster.directory import Place
from tmkb.transport.http import Request

httpx2 = pytest.importorskip("httpx2")
NO_DESCRIPTORS = OSError(errno.EMFILE, "Too many open files")


def connect_error(cause):
    error = httpx2.ConnectError("All connection attempts failed")
    error.__cause__ = cause
    return error


def refused(address, monkeypatch=None, error=None):
    """The exception of a forwarded request. ``error``: of the connection, instead of a real one."""
    from tmkb.cluster.forwarding import Forwarder

    async def send(self, *args, **options):
        raise error

    if error is not None:
        monkeypatch.setattr(httpx2.AsyncClient, "send", send)

    async def scenario():
        forwarder = Forwarder({"quiet_seconds": 1, "request_seconds": 1, "stream_bytes": 1})
        try:
            await forwarder.send(Request("POST", "/mcp", {}, b"{}"), Place("other", address))
        finally:
            await forwarder.close()

    with pytest.raises(OSError) as raised:
        asyncio.run(scenario())
    return raised.type


def test_an_address_where_nobody_listens_is_that_of_an_ended_replica(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        assert refused(f"127.0.0.1:{probe.getsockname()[1]}") is ConnectionRefusedError
    assert refused(str(tmp_path / "socket")) is ConnectionRefusedError


@pytest.mark.parametrize(
    "error",
    [
        NO_DESCRIPTORS,
        connect_error(NO_DESCRIPTORS),
        connect_error(OSError(errno.EHOSTUNREACH, "No route to host")),
        connect_error(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
        connect_error(ExceptionGroup("attempts", [ConnectionRefusedError(), NO_DESCRIPTORS])),
    ],
)
def test_a_failure_on_our_side_does_not_mean_that_the_owner_has_ended(monkeypatch, error):
    assert refused("127.0.0.1:1", monkeypatch, error) is TimeoutError


def test_a_name_with_several_addresses_refuses_if_all_do(monkeypatch):
    error = connect_error(ExceptionGroup("attempts", [ConnectionRefusedError(), ConnectionRefusedError()]))

    assert refused("name:1", monkeypatch, error) is ConnectionRefusedError
