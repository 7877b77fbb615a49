from __future__ import annotations

import pytest
import torch
from populations import population

from gp_eval.experiments.disco import trials


@pytest.mark.parametrize("regime", ["uniform", "chronological", "performance-gap"])
def test_no_target_is_a_reference(regime: str) -> None:
    scores = population(40)
    for trial in trials(scores, regime=regime, n_splits=3):  # type: ignore[arg-type]
        assert len(trial.targets.models) == 5
        assert not set(trial.targets.models) & set(trial.references.models)
        assert trial.targets.probabilities is not None


def test_uniform_targets_differ_and_the_others_are_all_references() -> None:
    found = list(trials(population(40), n_splits=3, n_targets=8))
    assert len({trial.targets.models for trial in found}) == 3
    assert [len(trial.references.models) for trial in found] == [32, 32, 32]


def test_chronological_targets_are_the_last_models() -> None:
    scores = population(40)
    found = list(trials(scores, regime="chronological", n_splits=3, n_targets=4))
    for trial in found:
        assert trial.targets.models == scores.models[-4:]
        assert len(trial.references.models) == round(0.9 * 36)
    assert len({trial.references.models for trial in found}) == 3


def test_a_gap_lies_between_targets_and_references() -> None:
    scores = population(40)
    ranked = scores.performance.sort(descending=True).values
    for trial in trials(
        scores, regime="performance-gap", n_splits=2, n_targets=4, gap=0.25
    ):
        worst = trial.targets.performance.min()
        # Sums over fewer columns round differently.
        assert float(worst) == pytest.approx(float(ranked[3]), rel=1e-12)
        assert trial.references.performance.max() <= ranked[4 + 10] + 1e-12


def test_fewer_sources_are_some_of_the_references() -> None:
    (trial,) = trials(population(40), n_splits=1)
    smaller = trial.with_sources(7)
    assert len(smaller.references.models) == 7
    assert set(smaller.references.models) < set(trial.references.models)
    assert smaller.targets is trial.targets
    same = trial.with_sources(35).references
    assert torch.equal(same.scores, trial.references.scores)
    with pytest.raises(ValueError, match=r"sources: expected 2\.\.35 models, got 36"):
        trial.with_sources(36)


def test_splits_that_make_no_sense_are_refused() -> None:
    scores = population(20)
    with pytest.raises(ValueError, match="regime: expected one of"):
        list(trials(scores, regime="random"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="splits: expected at least 1"):
        list(trials(scores, n_splits=0))
    with pytest.raises(ValueError, match="2 chronological splits .* would be equal"):
        list(trials(scores, regime="chronological", n_splits=2, fraction=1.0))
    (one,) = trials(scores, regime="chronological", n_splits=1)
    assert len(one.references.models) == 15
