"""The bench measures what it says it does, and distinguishes good figures from bad ones. How fast anything is, is not asked here."""

import os
import sys

import compare
import measure
import pytest
import report
import run

pytestmark = pytest.mark.full

linux = pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is read from Linux")
GOOD = {
    "tmkb": dict.fromkeys(report.HEADINGS, 2.0),
    "tmkb-no-cache": dict.fromkeys(report.HEADINGS, 2.1),
    "peer": {figure: 1.0 if figure in report.RATES else 3.0 for figure in report.HEADINGS},
    "echo": dict.fromkeys(report.HEADINGS, 1.0),
    "bare": {"start": 1.25},
}
BAD = [
    ("tmkb", "start", 2.6),
    ("tmkb", "first_call", 3.1),
    ("tmkb", "one", 3.1),
    ("tmkb", "large", 2.1),
    ("peer", "p95", 1.9),
    ("peer", "calls", 2.1),
    ("peer", "memory", 1.9),
    ("tmkb-no-cache", "memory", 2.3),
    ("tmkb-no-cache", "pings", 1.7),
    ("tmkb-no-cache", "exit", 2.3),
]


@linux
def test_a_round_has_every_figure(tmp_path, capsys):
    own = run.commands(sys.executable)
    commands = {"tmkb": own[run.SERVE], "tmkb-no-cache": [*own[run.SERVE], "--no-cache"], "echo": own[run.ECHO]}
    effort = measure.Effort(rounds=1, starts=1, turns=1, sequential=40, bursts=1, burst=30)

    samples = measure.measure(commands, own[run.BARE], run.plain(str(tmp_path)), effort)

    assert {name: set(of) for name, of in samples.items()} == {
        **{name: set(report.HEADINGS) for name in commands},
        "bare": {"start"},
    }
    assert all(value > 0 for of in samples.values() for values in of.values() for value in values)
    assert os.listdir(tmp_path / "tmkb")  # the cache that a second start found
    assert run.tell(samples, markdown=True) in (0, 1)
    assert "| tmkb-no-cache |" in capsys.readouterr().out


def test_good_figures_are_ok(capsys):
    assert run.tell(made_up(), markdown=False) == 0
    assert "NOT OK" not in capsys.readouterr().out


@pytest.mark.parametrize(("name", "figure", "value"), BAD)
def test_a_bad_figure_is_not_ok(capsys, name, figure, value):
    assert run.tell(made_up(name, figure, value), markdown=False) == 1
    assert "NOT OK" in capsys.readouterr().out


def test_a_row_that_became_worse_is_named(tmp_path, capsys):
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    report.write(before, {"start": [2.0, 2.1, 2.2], "noise": [1.0, 2.0, 3.0], "better": [2.0, 2.0], "gone": [1.0]})
    report.write(after, {"start": [2.5, 2.6, 2.7], "noise": [2.0, 2.5, 3.5], "better": [1.0, 1.0], "new": [9.0]})

    assert compare.main([str(before), str(after)]) == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("WORSE")] == ["WORSE"]
    assert compare.main([str(after), str(before)]) == 1  # `better` the other way around
    assert compare.main([str(before), str(before)]) == 0


def test_our_ratios_are_beside_a_floor():
    rows = report.beside_floor(made_up())

    assert rows["tmkb: start"] == [2.0 / 1.25]
    assert rows["tmkb: calls/s"] == [1.0 / 2.0]


@linux
def test_an_answer_that_is_none_is_noticed(tmp_path):
    server = [sys.executable, "-c", 'for line in open(0): print(\'{"id": 0, "error": {}}\', flush=True)']

    with pytest.raises(RuntimeError, match=r': {"id": 0, "error": {}}$'):
        measure.starting(server, run.plain(str(tmp_path)))


def made_up(name="tmkb", figure="p50", value=2.0):
    """Good figures, but for one."""
    figures = {**GOOD, name: {**GOOD[name], figure: value}}
    return {each: {key: [number] for key, number in of.items()} for each, of in figures.items()}
