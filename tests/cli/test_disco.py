from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import torch
from command import gp_eval
from populations import population

from gp_eval.cli.disco_options import Choice, Predictor, Source, SplitName
from gp_eval.data import References
from gp_eval.disco import DiscoOptions, DiscoPlan, item_order, predictor_names
from gp_eval.disco.cross_validation import out_of_fold_errors
from gp_eval.disco.options import Choice as PlanChoice
from gp_eval.disco.options import Source as PlanSource
from gp_eval.experiments.disco import SplitName as Regime


@pytest.fixture
def everyone() -> References:
    return population(36, 50)


@pytest.fixture
def refs(everyone: References, tmp_path: Path) -> Path:
    everyone.subset(models=everyone.models[:30]).write(tmp_path / "refs.npz")
    return tmp_path / "refs.npz"


@pytest.fixture
def later(everyone: References, tmp_path: Path) -> Path:
    everyone.subset(models=everyone.models[30:]).write(tmp_path / "later.npz")
    return tmp_path / "later.npz"


def long_form(table: References, items: tuple[str, ...]) -> pd.DataFrame:
    assert table.probabilities is not None
    rows = [
        {"item": item, "model": model}
        | {
            f"p{c}": float(p)
            for c, p in enumerate(table.probabilities[k, table.items.index(item)])
        }
        for item in items
        for k, model in enumerate(table.models)
    ]
    return pd.DataFrame(rows)


def test_fit_writes_the_plan_of_the_flags(refs: Path, tmp_path: Path) -> None:
    outcome = gp_eval(
        "disco", "fit", refs, "-k", 8, "-o", tmp_path / "plan", "--choice", "pds",
        "--predictor", "ridge", "--predictor-option", "alpha=2.5", "--guiding", 9,
        "--pca", 0, "--signature", "scores", "--stratify", "--macro",
        "--seed", 4, "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    plan = DiscoPlan.load(tmp_path / "plan")
    assert plan.options == DiscoOptions(
        k=8,
        choice="pds",
        predictor="ridge",
        predictor_options={"alpha": 2.5},
        guiding=9,
        pca=None,
        signature="scores",
        stratify=True,
        seed=4,
    )
    table = References.read(refs).macro()
    torch.testing.assert_close(plan.targets, table.performance)
    errors = out_of_fold_errors(table, plan)
    record = json.loads(outcome.out)
    assert record == {
        "plan": str(tmp_path / "plan"),
        "k": 8,
        "N": 50,
        "references": 30,
        "choice": "pds",
        "signature": "scores",
        "predictor": "ridge",
        "out_of_fold_mae": pytest.approx(float(errors.abs().mean()), rel=1e-9),
    }


def test_fit_select_predict_for_people(
    refs: Path, later: Path, everyone: References, tmp_path: Path
) -> None:
    plan = tmp_path / "plan"
    fitted = gp_eval("disco", "fit", refs, "-k", 10, "-o", plan, "--folds", 2)
    assert fitted.code == 0, fitted.err
    assert "out_of_fold_mae" in fitted.out
    assert f"gp-eval disco select {plan}" in fitted.err
    chosen = gp_eval("disco", "select", plan)
    items = tuple(chosen.out.split())
    assert items == DiscoPlan.load(plan).items
    table = References.read(later)
    long_form(table, items).to_parquet(tmp_path / "responses.parquet")
    outcome = gp_eval("disco", "predict", plan, tmp_path / "responses.parquet")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["model", "prediction", "95", "%", "interval"]
    expected = DiscoPlan.load(plan).predict(table)
    ends = expected.interval()
    assert ends is not None
    assert [line.split() for line in lines[1:]] == [
        [name, f"{mean:.4f}", f"[{low:.4f},", f"{high:.4f}]"]
        for name, mean, low, high in zip(
            table.models, expected.mean, *ends, strict=True
        )
    ]


def test_json_of_predictions_follows_the_level(
    refs: Path, later: Path, tmp_path: Path
) -> None:
    gp_eval("disco", "fit", refs, "-k", 10, "-o", tmp_path / "plan")
    outcome = gp_eval(
        "disco", "predict", tmp_path / "plan", later, "--json", "--level", 0.5
    )
    assert outcome.code == 0, outcome.err
    assert "40 items are not among the 10 chosen ones and were ignored" in outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    expected = DiscoPlan.load(tmp_path / "plan").predict(References.read(later))
    ends = expected.interval(0.5)
    assert ends is not None
    for t, record in enumerate(records):
        assert record == {
            "model": expected.models[t],
            "prediction": pytest.approx(float(expected.mean[t]), rel=1e-12),
            "low": pytest.approx(float(ends[0][t]), rel=1e-12),
            "high": pytest.approx(float(ends[1][t]), rel=1e-12),
            "level": 0.5,
        }


def test_a_predictor_without_interval_says_so(
    refs: Path, later: Path, tmp_path: Path
) -> None:
    words = ("disco", "fit", refs, "-k", 10, "-o", tmp_path / "plan")
    assert gp_eval(*words, "--predictor", "ridge").code == 0
    record = json.loads(
        gp_eval("disco", "predict", tmp_path / "plan", later, "--json").out.split("\n")[
            0
        ]
    )
    assert record["low"] is record["high"] is record["level"] is None
    people = gp_eval("disco", "predict", tmp_path / "plan", later)
    assert "interval" not in people.out
    assert "ridge has no interval" in people.err


def test_select_prints_the_order_of_references(refs: Path) -> None:
    table = References.read(refs)
    outcome = gp_eval("disco", "select", refs, "-k", 5, "--choice", "pds", "--json")
    records = [json.loads(line) for line in outcome.out.splitlines()]
    order = item_order(table, DiscoOptions(choice="pds"))[:5].tolist()
    assert [r["item"] for r in records] == [table.items[i] for i in order]
    assert [r["rank"] for r in records] == [1, 2, 3, 4, 5]
    scores = [r["score"] for r in records]
    assert scores == sorted(scores, reverse=True)
    drawn = gp_eval(
        "disco", "select", refs, "-k", 5, "--choice", "random", "--seed", 1, "--json"
    )
    first = json.loads(drawn.out.splitlines()[0])
    assert first["score"] is None
    seeded = item_order(table, DiscoOptions(choice="random", seed=1))
    assert first["item"] == table.items[int(seeded[0])]
    assert gp_eval("disco", "select", refs, "-k", 51).code == 1


def test_all_missing_chosen_items_are_listed(
    refs: Path, later: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan"
    gp_eval("disco", "fit", refs, "-k", 30, "-o", plan, "--predictor", "ridge")
    items = DiscoPlan.load(plan).items
    long_form(References.read(later), items[:5]).to_csv(
        tmp_path / "few.csv", index=False
    )
    outcome = gp_eval("disco", "predict", plan, tmp_path / "few.csv")
    assert outcome.code == 1
    assert outcome.out == ""
    assert "25 of the 30 chosen items are missing" in outcome.err
    assert all(f"'{item}'" in outcome.err for item in items[5:])
    assert outcome.err.count("\n") == 1


def test_a_plan_is_not_replaced_by_accident(refs: Path, tmp_path: Path) -> None:
    words = ("disco", "fit", refs, "-o", tmp_path / "plan", "--predictor", "ridge")
    assert gp_eval(*words, "-k", 5).code == 0
    again = gp_eval(*words, "-k", 6)
    assert again.code == 1
    assert "holds a plan; --force replaces it" in again.err
    assert len(DiscoPlan.load(tmp_path / "plan").items) == 5
    assert gp_eval(*words, "-k", 6, "--force").code == 0
    assert len(DiscoPlan.load(tmp_path / "plan").items) == 6


def test_log_likelihoods_are_named_by_a_flag(
    everyone: References, refs: Path, later: Path, tmp_path: Path
) -> None:
    for path in (refs, later):
        with np.load(path) as file:
            arrays = dict(file)
        arrays["probs"] = np.log(arrays["probs"]) - 2.0
        np.savez(tmp_path / f"logs-{path.name}", **arrays)
    for prefix, flags in (("", ()), ("logs-", ("--log-likelihoods",))):
        fitted = gp_eval(
            "disco", "fit", tmp_path / f"{prefix}refs.npz", "-k", 8,
            "-o", tmp_path / f"{prefix}plan", "--predictor", "ridge", *flags,
        )  # fmt: skip
        assert fitted.code == 0, fitted.err
    found = [
        [
            json.loads(line)["prediction"]
            for line in gp_eval(
                "disco", "predict", tmp_path / f"{prefix}plan",
                tmp_path / f"{prefix}later.npz", "--json", *flags,
            ).out.splitlines()
        ]
        for prefix, flags in (("", ()), ("logs-", ("--log-likelihoods",)))
    ]  # fmt: skip
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    unnamed = gp_eval("disco", "fit", tmp_path / "logs-refs.npz", "-k", 8, "-o", "x")
    assert unnamed.code == 1
    assert "probabilities: expected numbers >= 0" in unnamed.err
    everyone.write(tmp_path / "scores.parquet")
    bare = gp_eval("disco", "select", tmp_path / "scores.parquet", "--log-likelihoods")
    assert "has no array probs" in bare.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--predictor", "mean"), "gp-eval: predictor: 'mean' needs choice='random'"),
        (("--guiding", 1), "gp-eval: guiding: Input should be greater than or equal"),
        (("--guiding", 31), "gp-eval: guiding: expected 2..30 models, got 31"),
        (("--seed", -1), "gp-eval: seed: Input should be greater than or equal to 0"),
        (("--predictor-option", "alpha"), "expected NAME=VALUE, got 'alpha'"),
        (("--predictor-option", "alpha=1"), "gp-eval: gp: unknown options ['alpha']"),
        (("-k", 51), "gp-eval: k: expected at most the 50 items, got 51"),
    ],
)
def test_wrong_options_are_one_line(
    refs: Path, tmp_path: Path, flags: tuple[object, ...], message: str
) -> None:
    words = ("disco", "fit", refs, "-o", tmp_path / "plan")
    outcome = gp_eval(*words, *(() if "-k" in flags else ("-k", 5)), *flags)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "plan").exists()


def test_what_is_no_plan_has_exit_code_4(later: Path, tmp_path: Path) -> None:
    outcome = gp_eval("disco", "predict", tmp_path, later)
    assert outcome.code == 4
    assert "is not a plan" in outcome.err
    assert gp_eval("disco", "select", tmp_path).code == 4
    assert gp_eval("disco", "select", tmp_path, "-k", 3).code == 2
    assert gp_eval("disco", "predict", tmp_path, later, "--level", 1).code == 2


def test_digits_are_references_too(tmp_path: Path) -> None:
    outcome = gp_eval("disco", "select", "digits", "-k", 3)
    assert len(outcome.out.split()) == 3, outcome.err


def test_flags_know_what_plans_know() -> None:
    names = [g for a in get_args(PlanChoice) for g in (get_args(a) or (a,))]
    assert {c.value for c in Choice} == set(names) - {"given"}
    assert {p.value for p in Predictor} == {*predictor_names(), "mean"}
    assert {s.value for s in Source} == set(get_args(PlanSource))
    assert {s.value for s in SplitName} == set(get_args(Regime))
