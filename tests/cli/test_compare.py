from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from command import gp_eval
from scipy import stats
from sessions import unique_references
from torch import Tensor

from gp_eval import Performance, References, Session
from gp_eval.models import registry
from gp_eval.session import MultiTargetSession

Z95 = stats.norm.ppf(0.975)


def make_run(
    folder: Path, target: str, shift: float, *, references: References | None = None
) -> Path:
    """A session of one target that is better than the references by ``shift``."""
    references = references or unique_references()
    path = folder / f"run-{target}"
    with Session.create(path, references, target=target) as session:
        for item in session.ask(8):
            scores = references.scores[references.items.index(item)]
            session.tell(item, float(scores.mean()) + shift)
    return path


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Three targets, of which the last is far behind."""
    shifts = {"good": 0.1, "alike": 0.097, "bad": -0.6}
    return [make_run(tmp_path, target, shift) for target, shift in shifts.items()]


def records(*words: object) -> tuple[list[dict], list[dict]]:
    """Lines of the ranking, and of the pairs."""
    outcome = gp_eval("compare", *words, "--json")
    assert outcome.code == 0, outcome.err
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    n_models = sum("target" in line for line in lines)
    assert all("target" in line for line in lines[:n_models])
    return lines[:n_models], lines[n_models:]


def test_json_has_the_documented_keys_and_the_figures_of_status(
    runs: list[Path],
) -> None:
    ranking, pairs = records(*runs)
    assert [line["target"] for line in ranking] == ["good", "alike", "bad"]
    status = {
        run: json.loads(gp_eval("status", run, "--json").out) for run in runs
    }  # in the order of the ranking
    for line, found in zip(ranking, status.values(), strict=True):
        assert line == {
            "target": found["target"],
            "estimate": found["estimate"],
            "low": pytest.approx(found["low"], rel=1e-10),
            "high": pytest.approx(found["high"], rel=1e-10),
            "n": 8,
            "N": 24,
            "rank_best": line["rank_best"],
            "rank_worst": line["rank_worst"],
            "tied_with": line["tied_with"],
        }
    assert [line["tied_with"] for line in ranking] == [["alike"], ["good"], []]
    ranks = [(line["rank_best"], line["rank_worst"]) for line in ranking]
    assert ranks == [(1, 2), (1, 2), (3, 3)]
    names = [(line["a"], line["b"]) for line in pairs]
    assert names == [("good", "alike"), ("good", "bad"), ("alike", "bad")]


def test_pairs_are_independent_differences_of_the_status(runs: list[Path]) -> None:
    _, pairs = records(*runs, "--level", "0.8")
    found = {}
    for run in runs:
        status = json.loads(gp_eval("status", run, "--json").out)
        found[status["target"]] = status
    for line in pairs:
        a, b = found[line["a"]], found[line["b"]]
        d = a["estimate"] - b["estimate"]
        s = math.hypot(a["width"], b["width"]) / 2 / Z95
        low, high = stats.norm.interval(0.8, loc=d, scale=s)
        assert line == {
            "a": line["a"],
            "b": line["b"],
            "difference": pytest.approx(d, rel=1e-10),
            "low": pytest.approx(low, rel=1e-10),
            "high": pytest.approx(high, rel=1e-10),
            "probability_a_better": pytest.approx(stats.norm.cdf(d / s), rel=1e-10),
        }


def test_tables_for_people_say_what_they_rest_on(runs: list[Path]) -> None:
    outcome = gp_eval("compare", *runs, "--level", "0.9")
    assert outcome.code == 0
    ranking, pairs = (block.splitlines() for block in outcome.out.split("\n\n"))
    assert [line.split()[:2] for line in ranking] == [
        ["target", "rank"],
        ["good", "1-2"],
        ["alike", "1-2"],
        ["bad", "3"],
    ]
    assert ranking[1].split()[-1] == "alike"
    assert "8 of 24" in ranking[1]
    assert len(pairs) == 4
    assert pairs[1].startswith("good - alike")
    assert "90 % interval" in outcome.out
    assert "independent: conservative" in outcome.err
    assert "model-based, 90 %" in outcome.err
    assert "Joint" not in outcome.err


def test_one_run_is_a_ranking_of_one(runs: list[Path]) -> None:
    outcome = gp_eval("compare", runs[0])
    assert outcome.code == 0
    assert "P(first better)" not in outcome.out
    assert "independent" not in outcome.err
    ranking, pairs = records(runs[0])
    assert (ranking[0]["rank_best"], ranking[0]["rank_worst"]) == (1, 1)
    assert pairs == []


def test_the_table_of_pairs_ends_at_six_models(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, f"t{i}", 1e-4 * i) for i in range(7)]
    six = gp_eval("compare", *runs[:6])
    assert len(six.out.split("\n\n")[1].splitlines()) == 1 + 15
    seven = gp_eval("compare", *runs)
    assert "P(first better)" not in seven.out
    assert "21 pairs: --json prints them" in seven.err
    assert "t5, t4 and 4 more" in seven.out
    assert len(records(*runs)[1]) == 21


def test_runs_on_other_references_are_exit_code_4(
    runs: list[Path], tmp_path: Path
) -> None:
    fewer = unique_references(n_models=5)
    other = make_run(tmp_path, "other", 0.0, references=fewer)
    outcome = gp_eval("compare", *runs, other)
    assert outcome.code == 4
    assert outcome.out == ""
    assert str(runs[0]) in outcome.err
    assert str(other) in outcome.err
    assert gp_eval("compare", tmp_path).code == 4


def test_a_target_in_two_runs_is_refused(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    again = make_run(tmp_path / "again", "good", 0.1)
    outcome = gp_eval("compare", *runs, again)
    assert outcome.code == 1
    assert "target: 'good' is in" in outcome.err
    assert str(runs[0]) in outcome.err
    assert str(again) in outcome.err


def test_wrong_usage_is_exit_code_2(runs: list[Path]) -> None:
    assert gp_eval("compare").code == 2
    assert gp_eval("compare", runs[0], "--level", "95").code == 2
    assert gp_eval("compare", runs[0], "--level", "nan").code == 2


def test_picture_is_written_and_checked_first(runs: list[Path], tmp_path: Path) -> None:
    picture = tmp_path / "comparison.svg"
    outcome = gp_eval("compare", *runs, "--json", "-o", picture)
    assert f"Picture: {picture}" in outcome.err
    assert len(outcome.out.splitlines()) == 6
    assert "<!-- alike -->" in picture.read_text()
    wrong = gp_eval("compare", *runs, "-o", tmp_path / "comparison.txt")
    assert wrong.code == 1
    assert wrong.out == ""


def test_comparing_changes_no_file(runs: list[Path]) -> None:
    def content() -> dict[Path, bytes]:
        return {p: p.read_bytes() for run in runs for p in run.iterdir()}

    before = content()
    gp_eval("compare", *runs)
    assert content() == before


class KnownBelief:
    """A model of two targets whose joint belief is known, whatever is told."""

    covariance: Tensor | None = torch.tensor(
        [[4e-4, 3e-4], [3e-4, 5e-4]], dtype=torch.float64
    )

    def __init__(self, references: References, *, n_targets: int) -> None:
        self.n_targets, self.initial_items = n_targets, 2

    def condition(self, items: Tensor, scores: Tensor) -> None:
        pass

    def performance(self) -> Performance:
        mean = torch.tensor([0.5, 0.52], dtype=torch.float64)
        variance = torch.tensor([4e-4, 5e-4], dtype=torch.float64)
        return Performance(mean, variance, self.covariance)

    def acquisition(self) -> None:
        return None


@pytest.fixture
def joint_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of two targets with that belief."""
    monkeypatch.setitem(registry._MODELS, "known", KnownBelief)
    path = tmp_path / "joint"
    with MultiTargetSession.create(
        path, unique_references(), targets=["x", "y"], model="known"
    ) as session:
        session.tell_all({("x", "q1"): 0.5, ("x", "q2"): 0.5, ("y", "q1"): 0.5})
    return path


def test_targets_of_one_run_are_compared_jointly(joint_run: Path) -> None:
    outcome = gp_eval("compare", joint_run)
    assert f"Joint belief of the targets of '{joint_run}'" in outcome.err
    assert "independent" not in outcome.err
    ranking, (pair,) = records(joint_run)
    assert [(line["target"], line["n"]) for line in ranking] == [("y", 1), ("x", 2)]
    s = math.sqrt(4e-4 + 5e-4 - 2 * 3e-4)
    assert pair["probability_a_better"] == pytest.approx(stats.norm.cdf(0.02 / s))
    assert pair["high"] - pair["low"] == pytest.approx(2 * Z95 * s)


def test_a_model_without_joint_belief_cannot_be_compared(
    joint_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownBelief, "covariance", None)
    outcome = gp_eval("compare", joint_run)
    assert outcome.code == 1
    assert "'known' gives no covariance" in outcome.err


def test_a_mixture_is_joint_within_and_independent_between_runs(
    joint_run: Path, runs: list[Path]
) -> None:
    outcome = gp_eval("compare", runs[0], joint_run)
    assert "Joint belief" in outcome.err
    assert "independent: conservative" in outcome.err
    _, pairs = records(runs[0], joint_run)
    width = json.loads(gp_eval("status", runs[0], "--json").out)["width"]
    variance = {"x": 4e-4, "y": 5e-4, "good": (width / 2 / Z95) ** 2}
    assert len(pairs) == 3
    for pair in pairs:
        v = variance[pair["a"]] + variance[pair["b"]]
        if {pair["a"], pair["b"]} == {"x", "y"}:
            v -= 2 * 3e-4
        full = 2 * Z95 * math.sqrt(v)
        assert pair["high"] - pair["low"] == pytest.approx(full, rel=1e-10)
