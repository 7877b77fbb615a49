from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import gp_eval
from populations import population

from gp_eval.data import References
from gp_eval.disco import DiscoOptions
from gp_eval.experiments.disco import (
    error_correlations,
    run_trials,
    summarise_trials,
    trials,
)


@pytest.fixture
def refs(tmp_path: Path) -> Path:
    population(40, 30).write(tmp_path / "refs.npz")
    return tmp_path / "refs.npz"


def test_experiment_is_that_of_python(refs: Path) -> None:
    outcome = gp_eval(
        "disco", "experiment", refs, "-k", "4,8", "--choice", "random,jsd",
        "--predictor", "mean,ridge", "--split", "uniform,performance-gap",
        "--splits", 2, "--draws", 2, "--guiding", 6, "--targets", 4, "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    names = [(r["regime"], r["choice"], r["predictor"], r["k"]) for r in records]
    assert names == [
        (regime, choice, predictor, k)
        for regime in ("uniform", "performance-gap")
        for choice, predictor in (
            ("random", "mean"),
            ("random", "ridge"),
            ("jsd", "ridge"),
        )
        for k in (4, 8)
    ]
    guided = DiscoOptions(k=8, predictor="ridge", guiding=6)
    found = trials(
        References.read(refs), regime="performance-gap", n_splits=2, n_targets=4
    )
    expected = summarise_trials(run_trials(found, [guided], n_draws=2)).iloc[0]
    assert records[-1]["mae"] == pytest.approx(expected["mae"], rel=1e-12)
    assert records[-1]["mae_sd_draws"] == pytest.approx(
        expected["mae_sd_draws"], rel=1e-12
    )
    assert records[-1]["guiding"] == 6
    assert records[0]["guiding"] is None


def test_experiment_for_people(refs: Path) -> None:
    outcome = gp_eval(
        "disco", "experiment", refs, "-k", "4", "--predictor", "gp", "--splits", 2
    )
    assert outcome.code == 0, outcome.err
    head, *rows = outcome.out.splitlines()
    assert head.split()[:5] == ["regime", "choice", "predictor", "k", "MAE"]
    assert [row.split()[1] for row in rows] == ["random", "jsd"]
    assert "2 splits, 5 targets each" in outcome.err


def test_the_mean_of_chosen_items_is_left_out(refs: Path) -> None:
    words = ("disco", "experiment", refs, "-k", "4", "--splits", 1)
    outcome = gp_eval(*words, "--choice", "jsd", "--predictor", "mean")
    assert outcome.code == 1
    assert "'mean' needs choice 'random'" in outcome.err


@pytest.mark.parametrize(
    "flags",
    [
        ("-k", "4,x"),
        ("-k", "0"),
        ("--split", "random"),
        ("--choice", "given"),
        ("--predictor", ","),
        ("--missing", "mean"),
    ],
)
def test_wrong_lists_are_wrong_usage(refs: Path, flags: tuple[str, ...]) -> None:
    assert gp_eval("disco", "experiment", refs, *flags).code == 2


def test_factors_prints_a_row_for_each_level(refs: Path) -> None:
    words = ("disco", "factors", refs, "-k", 5, "--splits", 1, "--draws", 1)
    outcome = gp_eval(*words, "--json")
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert {r["factor"] for r in records} == {
        *("base", "guiding", "stratify", "pca", "predictor", "sources")
    }
    assert [r["level"] for r in records if r["factor"] == "sources"] == [
        "9",
        "18",
        "26",
        "35",
    ]
    assert gp_eval(*words).out.splitlines()[0].split()[:2] == ["factor", "level"]


def test_calibration_is_that_of_python(refs: Path) -> None:
    words = (
        "disco", "calibration", refs, "-k", 5, "--splits", 3, "--predictor", "ridge"
    )  # fmt: skip
    outcome = gp_eval(*words, "--json")
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    table = References.read(refs)
    rows = run_trials(trials(table, n_splits=3), [DiscoOptions(k=5, predictor="ridge")])
    expected = error_correlations(rows, table)
    assert [r["measure"] for r in records] == list(expected["measure"])
    assert [r["pearson"] for r in records] == pytest.approx(list(expected["pearson"]))
    assert "calibration error" in gp_eval(*words).out


def test_cost_of_the_paper() -> None:
    words = ("disco", "cost", "--full", 8.53)
    outcome = gp_eval(*words, "--offline", 3284, "--online", 0.07, "--json")
    assert json.loads(outcome.out) == {
        "full": 8.53,
        "online": 0.07,
        "offline": 3284.0,
        "saved": pytest.approx(8.46),
        "break_even": 389,
    }
    people = gp_eval(
        *words, "--references", 385, "--fit", 1, "-k", 100, "--items", 14042,
        "--later", 753,
    )  # fmt: skip
    assert people.code == 0, people.err
    assert "3285.05" in people.out
    assert "later models planned" in people.out
    never = gp_eval("disco", "cost", "--full", 1, "--offline", 5, "--online", 1)
    assert "never" in never.out


@pytest.mark.parametrize(
    "flags",
    [
        ("--online", 0.1),
        ("--online", 0.1, "--offline", 1, "--references", 2),
        ("--offline", 1, "-k", 5),
        ("--offline", 1, "-k", 5, "--items", 10, "--online", 1),
        ("--offline", 1, "-k", 11, "--items", 10),
    ],
)
def test_costs_that_are_given_twice_or_not_are_wrong_usage(
    flags: tuple[object, ...],
) -> None:
    assert gp_eval("disco", "cost", "--full", 1, *flags).code == 2
