"""A webhook reaches one replica, which tells the others."""

import contextlib
import shutil

import pytest

from tests.server.test_pull import FILE, SECRET, post, serving
from tests.server.test_reload import until
from tests.support.git import Repository
from tests.support.process import HttpServer
from tests.transport.test_hook import hub

pytest.importorskip("httpx2")
pytestmark = [pytest.mark.process, pytest.mark.needs("redis")]


def test_all_replicas_pull(patterns, tmp_path):
    from tests.cluster.servers import KEY, Redis

    origin = Repository(tmp_path / "origin")
    shutil.copytree(patterns("acme_auth_001") / "acme_auth_001", origin.path / "acme_auth_001")
    origin.commit()
    with contextlib.ExitStack() as stack:
        redis = Redis()
        stack.callback(redis.kill)
        shared = {"TMKB_WEBHOOK_SECRET": SECRET, "TMKB_STATE_KEY": KEY, "TMKB_CLUSTER": redis.url}
        environments = [shared | {"XDG_CACHE_HOME": str(tmp_path / name)} for name in ("one", "two")]
        replicas = [
            stack.enter_context(serving(origin, environment, "--pull", "0", kind=HttpServer))
            for environment in environments
        ]
        commit = origin.replace(FILE, "severity: high", "severity: low")

        assert post(replicas[0], headers=hub(b"{}", SECRET)) == 202
        for replica in replicas:
            until(replica, f"Pulled {origin.source()}: commit {commit[:7]}")
