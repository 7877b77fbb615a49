from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from populations import population
from scipy.stats import spearmanr

from gp_eval.disco import DiscoOptions, DiscoPlan
from gp_eval.experiments.disco import (
    by_fit,
    draws_of,
    records,
    run_trials,
    summarise_trials,
    trials,
)

RIDGE = DiscoOptions(k=10, predictor="ridge")


def test_rows_are_what_plans_of_the_references_say() -> None:
    (trial,) = trials(population(40), n_splits=1)
    for options in (
        RIDGE,
        DiscoOptions(k=10, choice="pds", predictor="gp", guiding=7, seed=3),
        DiscoOptions(k=10, choice="random", predictor="mean"),
        DiscoOptions(k=10, choice="random", predictor="knn"),
    ):
        rows = run_trials([trial], [options])
        expected = DiscoPlan.fit(trial.references, options).predict(trial.targets)
        np.testing.assert_allclose(rows["predicted"], expected.mean, rtol=1e-10)
        assert tuple(rows["model"]) == trial.targets.models
        np.testing.assert_allclose(rows["truth"], trial.targets.performance)
        assert rows["std"].notna().all() == (options.predictor == "gp")
        assert set(rows["choice"]) == {options.choice}


def test_random_choices_differ_between_splits_and_draws_and_repeat() -> None:
    found = list(trials(population(40), n_splits=2))
    mean = DiscoOptions(k=5, choice="random", predictor="mean")
    rows = run_trials(found, [mean], n_draws=3)
    again = run_trials(found, [mean], n_draws=3)
    pd.testing.assert_frame_equal(rows, again)
    first = rows[rows["split"] == 0].groupby("draw")["predicted"].first()
    assert first.nunique() == 3
    same = run_trials([found[0], found[0]], [mean])
    assert len(set(same["predicted"])) == 5  # the split's number is its seed


@pytest.mark.parametrize(
    ("change", "n_draws"),
    [
        ({}, 1),
        ({"guiding": 5}, 4),
        ({"choice": "random"}, 4),
        ({"predictor": "random-forest"}, 4),
        ({"predictor": "boosting"}, 4),
        ({"predictor": "gp"}, 1),
    ],
)
def test_what_is_not_random_is_drawn_once(
    change: dict[str, object], n_draws: int
) -> None:
    options = RIDGE.model_copy(update=change)
    assert [o.seed for o in draws_of(options, 4)] == list(range(n_draws))
    with pytest.raises(ValueError, match="draws: expected at least 1"):
        draws_of(options, 0)


def made_up() -> pd.DataFrame:
    """Two settings, three splits, two draws, four targets."""
    rng = np.random.default_rng(0)
    rows = []
    for setting in range(2):
        for split in range(3):
            truth = rng.random(4)
            for draw in range(2):
                rows += [
                    {
                        "setting": setting,
                        "regime": "uniform",
                        "split": split,
                        "draw": draw,
                        "choice": "jsd",
                        "predictor": "gp" if setting else "ridge",
                        "k": 10,
                        "guiding": pd.NA,
                        "stratify": False,
                        "pca": pd.NA,
                        "temperature": False,
                        "n_sources": 9,
                        "model": f"m{t}",
                        "truth": truth[t],
                        "predicted": truth[t] + 0.3 * rng.standard_normal(),
                        "std": 0.2 if setting else np.nan,
                    }
                    for t in range(4)
                ]
    return pd.DataFrame(rows)


def test_the_summary_is_that_of_literal_loops() -> None:
    rows = made_up()
    table = summarise_trials(rows)
    for setting in range(2):
        mae, rho, inside = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2))
        for split in range(3):
            for draw in range(2):
                some = rows.query(f"setting=={setting} & split=={split} & draw=={draw}")
                error = (some["predicted"] - some["truth"]).abs().to_numpy()
                mae[split, draw] = error.mean()
                rho[split, draw] = spearmanr(some["truth"], some["predicted"])[0]
                inside[split, draw] = (error <= 1.959963984540054 * 0.2).mean()
        row = table.iloc[setting]
        for name, values in (("mae", mae), ("spearman", rho)):
            assert row[name] == pytest.approx(values.mean(), rel=1e-12)
            spread = values.mean(1).std(ddof=1)
            assert row[f"{name}_sd_splits"] == pytest.approx(spread, rel=1e-12)
            within = np.sqrt(values.var(axis=1, ddof=1).mean())
            assert row[f"{name}_sd_draws"] == pytest.approx(within, rel=1e-12)
        if setting:
            assert row["coverage"] == pytest.approx(inside.mean(), rel=1e-12)
        else:
            assert np.isnan(row["coverage"])
        assert list(row[["n_targets", "n_splits", "n_draws"]]) == [4, 3, 2]


def test_coverage_follows_the_level() -> None:
    rows = made_up().query("setting == 1").assign(truth=0.0, predicted=0.19)
    assert by_fit(rows, level=0.5)["coverage"].tolist() == [0.0] * 6
    assert by_fit(rows, level=0.95)["coverage"].tolist() == [1.0] * 6


def test_one_split_and_draw_have_no_spread_and_ties_no_rank() -> None:
    rows = made_up().query("split == 0 & draw == 0").assign(predicted=0.5)
    (first, _) = records(summarise_trials(rows))
    assert first["spearman"] is None
    assert first["mae_sd_splits"] is None
    assert first["mae_sd_draws"] is None
    assert first["guiding"] is None
    assert isinstance(first["k"], int)


def test_nothing_to_run_is_refused() -> None:
    with pytest.raises(ValueError, match="settings: expected at least one"):
        run_trials([], [RIDGE])
