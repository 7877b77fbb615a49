from __future__ import annotations

import pytest
from populations import population

from gp_eval.data import References
from gp_eval.disco import DiscoOptions
from gp_eval.experiments.disco import (
    Levels,
    factor_analysis,
    run_trials,
    summarise_trials,
    trials,
)

BASE = DiscoOptions(k=8, predictor="ridge")
FEW = Levels(guiding=(2, 100, None), pca=(4, 300, None), predictors=("ridge", "knn"))


def test_one_factor_changes_at_a_time() -> None:
    found = list(trials(population(40), n_splits=2))
    table = factor_analysis(found, BASE, levels=FEW, n_draws=2)
    assert list(zip(table["factor"], table["level"], strict=True)) == [
        ("base", ""),
        ("guiding", "2"),
        ("guiding", "all"),
        ("stratify", "no"),
        ("stratify", "yes"),
        ("pca", "4"),
        ("pca", "none"),
        ("predictor", "ridge"),
        ("predictor", "knn"),
        ("sources", "9"),
        ("sources", "18"),
        ("sources", "26"),
        ("sources", "35"),
    ]
    errors = table.set_index(["factor", "level"])["mae"]
    for same in (("guiding", "all"), ("stratify", "no"), ("sources", "35")):
        assert errors[same] == pytest.approx(errors["base", ""], rel=1e-12)
    knn = BASE.model_copy(update={"predictor": "knn"})
    expected = summarise_trials(run_trials(found, [knn]))["mae"][0]
    assert errors["predictor", "knn"] == pytest.approx(expected, rel=1e-12)
    guiding = table.set_index(["factor", "level"])["n_draws"]
    assert guiding["guiding", "2"] == 2
    assert guiding["guiding", "all"] == 1


def test_levels_that_mean_nothing_are_left_out() -> None:
    everyone = population(30)
    bare = References(everyone.scores, everyone.items, everyone.models)
    found = list(trials(bare, n_splits=1))
    base = DiscoOptions(k=8, choice="random", predictor="gp")
    levels = Levels(predictors=("gp",), sources=(1.0,))
    table = factor_analysis(found, base, levels=levels, n_draws=1)
    assert list(table["factor"]) == ["base", "predictor", "sources"]
    few = DiscoOptions(k=8, predictor="ridge", guiding=20)
    table = factor_analysis(found, few, levels=Levels(sources=(0.5, 1.0)), n_draws=1)
    assert table.query("factor == 'sources'")["level"].tolist() == ["25"]
    assert "stratify" not in set(table["factor"])


def test_shares_and_trials_are_checked() -> None:
    with pytest.raises(ValueError, match=r"sources: expected 0 < share <= 1, got 1\.5"):
        factor_analysis([], BASE, levels=Levels(sources=(1.5,)))
    with pytest.raises(ValueError, match="trials: expected at least one"):
        factor_analysis([], BASE)
