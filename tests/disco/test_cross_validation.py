from __future__ import annotations

import pytest
import torch
from populations import population
from sklearn.linear_model import Ridge

from gp_eval._random import random_order
from gp_eval.disco import DiscoOptions, DiscoPlan
from gp_eval.disco.cross_validation import out_of_fold_errors


@pytest.mark.parametrize("folds", [2, 5, 100])
def test_every_reference_is_predicted_by_the_others(folds: int) -> None:
    references = population(20)
    options = DiscoOptions(
        k=10, signature="scores", predictor="ridge", pca=None, seed=3
    )
    plan = DiscoPlan.fit(references, options)
    errors = out_of_fold_errors(references, plan, folds=folds)
    rows = [references.items.index(item) for item in plan.items]
    x, y = references.scores[rows].T, references.performance
    fold = random_order(20, 3) % min(folds, 20)
    for k in range(20):
        others = fold != fold[k]
        ridge = Ridge(alpha=10.0).fit(x[others], y[others])
        expected = ridge.predict(x[k : k + 1])[0] - float(y[k])
        assert float(errors[k]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_mean_of_random_items_is_its_own_cross_validation() -> None:
    references = population(12)
    plan = DiscoPlan.fit(
        references, DiscoOptions(k=10, choice="random", predictor="mean")
    )
    errors = out_of_fold_errors(references, plan)
    expected = plan.predict(references).mean - references.performance
    torch.testing.assert_close(errors, expected)


def test_too_few_references_or_folds_are_refused() -> None:
    references = population(12)
    plan = DiscoPlan.fit(references, DiscoOptions(k=10, predictor="ridge"))
    with pytest.raises(ValueError, match="expected at least 2 of at least 3"):
        out_of_fold_errors(references, plan, folds=1)
    few = references.subset(models=references.models[:2])
    with pytest.raises(ValueError, match="got 5 of 2"):
        out_of_fold_errors(few, plan)
