"""What is kept of a log saves reading it: told by ratios, since how fast a machine is, is not asked here."""

import time

import pytest
from evtx import PyEvtxParser

from tests.bench import sysmcp_eventlog as bench
from tests.bench.timing import least
from tests.sysmcp import evtxfile, logs

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "System.evtx").write_bytes(evtxfile.file(evtxfile.chunks(evtxfile.events(20_000))))
    return folder


@pytest.mark.parametrize(
    "query", [{}, {"offset": 10_000}, {"minLevel": "ERROR"}, {"source": "eventlog"}, {"endTime": "2023-11-15"}]
)
def test_a_page_takes_less_than_half_of_reading_the_file_once(folder, query):
    provider = logs.served({"kind": "evtx", "folder": str(folder)})
    time.sleep(0.15)  # a file that has just been written is not remembered
    assert logs.ask(provider, **query)["totalExact"]
    path = str(folder / "System.evtx")

    whole = least(lambda: sum(1 for _ in PyEvtxParser(path, number_of_threads=1).records()))

    assert least(lambda: logs.ask(provider, **query)) < whole / 2


def test_the_bench_measures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "COUNT", 500)
    monkeypatch.setattr(bench, "TURNS", 1)

    assert bench.main() == 0
    assert capsys.readouterr().out.count("| Text |") == len(bench.QUERIES) + 1
