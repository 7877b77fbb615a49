from __future__ import annotations

import json
from pathlib import Path

import pytest
from alarm_problems import with_target
from command import gp_eval

from gp_eval import build_report, open_session, write_report


@pytest.fixture
def started(tmp_path: Path):
    """Starts a run of a target above all references, and tells it 25 scores."""

    def start(ability: float, *flags: str) -> Path:
        references, scores = with_target(ability)
        truth = dict(zip(references.items, scores.tolist(), strict=True))
        table, run = tmp_path / "refs.parquet", tmp_path / "run"
        references.write(table)
        begun = gp_eval(
            *("start", run, "--refs", table, "--target", "mine"),
            *("--option", "margin=1000", *flags),
        )
        assert begun.code == 0, begun.err
        for _ in range(25):
            item = gp_eval("ask", run).out.strip()
            assert gp_eval("tell", run, f"{item}={truth[item]}").code == 0
        return run

    return start


def test_status_says_what_was_seen_what_it_means_and_what_to_check(started) -> None:
    run = started(6.0)
    shown = gp_eval("status", run)
    assert "mine: Outside the range of the references: on" in shown.err
    assert "above all 40 references" in shown.err
    assert "drawn at random from here on" in shown.err
    assert "Check that its scores are on the scale of the references" in shown.err
    assert "the interval is that of a random sample" in shown.err
    record = json.loads(gp_eval("status", run, "--json").out)
    assert record["off_range_since"] in (10, 15, 23)
    assert record["off_range"] in shown.err


def test_the_report_warns_and_names_the_kind_of_interval(started, tmp_path) -> None:
    run = started(6.0)
    with open_session(run, read_only=True) as session:
        report = build_report(session)
    target = report.targets[0]
    assert "design-based" in target.kind
    assert "random sample" in target.covers
    assert [w for w in target.warnings if w.startswith("Outside the range")]
    assert not [w for w in target.warnings if "lies above all" in w]  # not twice
    written = write_report(report, tmp_path / "report.md").read_text()
    assert "Outside the range of the references" in written


def test_it_can_be_told_to_only_warn(started) -> None:
    run = started(6.0, "--on-alarm", "warn")
    shown = gp_eval("status", run)
    assert "its interval too narrow" in shown.err
    assert "the interval is a posterior credible interval" in shown.err


def test_a_typical_target_is_not_mentioned(started) -> None:
    run = started(-0.5)
    shown = gp_eval("status", run)
    assert "Outside" not in shown.err
    record = json.loads(gp_eval("status", run, "--json").out)
    assert record["off_range_since"] is None
    assert record["off_range"] is None


def test_an_unknown_response_is_wrong_usage(tmp_path: Path) -> None:
    outcome = gp_eval(
        *("start", tmp_path / "run", "--refs", "x", "--target", "mine"),
        *("--on-alarm", "panic"),
    )
    assert outcome.code == 2
    assert "fallback" in outcome.err
