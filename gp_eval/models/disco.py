"""DISCO as a model of the harness: a fixed order of items, prediction from scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

import torch
from botorch.models.model import Model
from torch import Tensor

from gp_eval.acquisition.disagreement import DisagreementSelection
from gp_eval.data import References
from gp_eval.disco.cross_validation import out_of_fold_errors
from gp_eval.disco.options import Choice, DiscoOptions
from gp_eval.disco.plan import DiscoPlan
from gp_eval.disco.responses import Responses
from gp_eval.disco.selection import reference_disagreement
from gp_eval.models.baselines.sampling import require_complete
from gp_eval.models.coreset import Coreset
from gp_eval.models.protocol import Performance

__all__ = ["BUDGETS", "Disco"]

BUDGETS = (10, 30, 60, 100, 200, 500, 1000, 2000)
"""The budgets of Figure 5 of the DISCO paper."""

_N_FITTED = 64  # plans kept: budgets times a few options

# Targets of one reference set share what was fitted to it; it goes with the references.
_FITTED: WeakKeyDictionary[References, dict[Any, tuple[DiscoPlan, Tensor]]]
_FITTED = WeakKeyDictionary()


class Disco:
    r"""Prediction of the benchmark score from the scores of a fixed set of items.

    Source: the DISCO paper; signatures are scores here, for a session tells nothing
    else. Those of class probabilities are in :class:`~gp_eval.disco.DiscoPlan`.

    Items are chosen in one order, by disagreement of the references, and a predictor is
    fitted across the references to the scores of the first ``K`` evaluated items, at
    ``K`` = 10, 30, 60, 100, 200, 500, 1000, 2000 and ``N`` only: *between these budgets
    the estimate stays what it was at the last one*. Before the first it is the mean of
    the references' benchmark scores with their variance.

    The variance is that of the GP on signatures, which the published method lacks. For
    other predictors it is the mean squared error over the references in 5-fold
    cross-validation; a target unlike them is missed by more.

    At ``n = N`` it does *not* end at the truth, nor is the variance 0, as published.
    Weighted items are supported. The plain mean of the chosen items is not an option:
    they are no sample of the benchmark.

    Args:
        references: Complete reference scores of at least two models (three for
            predictors other than ``"gp"``).
        choice: ``"jsd"``, ``"pds"`` (refused on scores 0 and 1) or ``"pds-per-class"``;
            ``"random"`` leaves the choice to the run's seed.
        guiding: Number ``M`` of references whose disagreement counts; ``None``: all.
        stratify: Whether every group of items gets its share.
        predictor: ``"gp"``, ``"ridge"``, ``"lasso"``, ``"knn"``, ``"random-forest"`` or
            ``"boosting"``.
        predictor_options: See :func:`~gp_eval.disco.fit_predictor`.
        pca: At most so many principal components for predictors other than the GP.
        budgets: Ascending numbers of items at which the estimate is renewed.
        seed: Fixes guiding models and trees.

    Raises:
        ValueError: For options that do not fit each other or the references.
        DataError: For references that lack what the options need.
    """

    name: ClassVar[str] = "disco"

    def __init__(
        self,
        references: References,
        *,
        choice: Choice = "jsd",
        guiding: int | None = None,
        stratify: bool = False,
        predictor: str = "gp",
        predictor_options: Mapping[str, Any] | None = None,
        pca: int | None = 256,
        budgets: Sequence[int] = BUDGETS,
        seed: int = 0,
    ) -> None:
        self.options = DiscoOptions.model_validate(
            {
                "choice": choice,
                "guiding": guiding,
                "stratify": stratify,
                "signature": "scores",
                "predictor": predictor,
                "predictor_options": dict(predictor_options or {}),
                "pca": pca,
                "seed": seed,
            }
        )
        _check(references, self.options)
        self.references = references
        self.coreset = Coreset(references)
        self.budgets = _usable(budgets, len(references.items))
        outcome = references.performance
        self._prior = Performance(outcome.mean(), outcome.var())
        self._beliefs: dict[int, Performance] = {}
        self._scores: dict[int, float] = {}
        self._selection = self._make_selection()

    def _make_selection(self) -> DisagreementSelection | None:
        choice = self.options.choice
        if choice == "random" or choice == "given":
            return None
        found = reference_disagreement(self.references, self.options).of(choice)
        groups = self.references.groups if self.options.stratify else None
        # There is no posterior to take the model's place.
        return DisagreementSelection(cast(Model, None), scores=found, groups=groups)

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that
                is not finite; nothing is changed then.
        """
        for item, score in self.coreset.check(items, scores):
            self.coreset.add(item, score)
            self._scores[item] = score

    def performance(self) -> Performance:
        """Prediction at the last budget reached; computed when asked for."""
        reached = [budget for budget in self.budgets if budget <= self.coreset.n]
        if not reached:
            return self._prior
        budget = reached[-1]
        if budget not in self._beliefs:
            self._beliefs[budget] = self._predict(budget)
        return self._beliefs[budget]

    def acquisition(self) -> DisagreementSelection | None:
        """The fixed order; ``None`` for random items."""
        return self._selection

    def _predict(self, budget: int) -> Performance:
        """From the first ``budget`` evaluated items, in ascending order."""
        rows = sorted(self.coreset.evaluated[:budget])
        plan, variance = self._fitted(tuple(rows))
        scores = torch.tensor([[self._scores[i]] for i in rows], dtype=torch.float64)
        predicted = plan.predict(Responses(plan.items, ("target",), scores))
        if predicted.std is not None:
            variance = predicted.std[0].square()
        return Performance(predicted.mean[0], variance)

    def _fitted(self, rows: tuple[int, ...]) -> tuple[DiscoPlan, Tensor]:
        """Plan on these items, and its mean squared error out of fold if needed."""
        shared = _FITTED.setdefault(self.references, {})
        key = (rows, self.options.model_dump_json())
        if key in shared:
            shared[key] = shared.pop(key)  # the last used come last
        else:
            options = self.options.model_copy(update={"choice": "given"})
            items = [self.references.items[i] for i in rows]
            plan = DiscoPlan.fit(self.references, options, items=items)
            error = torch.tensor(torch.nan, dtype=torch.float64)
            if options.predictor != "gp":
                error = out_of_fold_errors(self.references, plan).square().mean()
            shared[key] = plan, error
            # Random items and BayesAME's choice differ from target to target.
            while len(shared) > _N_FITTED:
                del shared[next(iter(shared))]
        return shared[key]


def _check(references: References, options: DiscoOptions) -> None:
    require_complete(Disco.name, references)
    least = 2 if options.predictor == "gp" else 3
    if len(references.models) < least:
        raise ValueError(
            f"disco: expected at least {least} references, got "
            f"{len(references.models)}: it is fitted across them"
        )
    if options.choice == "given" or options.predictor == "mean":
        raise ValueError(
            f"disco: not in the harness: choice={options.choice!r}, "
            f"predictor={options.predictor!r}; use a DiscoPlan, or rs-mean"
        )


def _usable(budgets: Sequence[int], n_items: int) -> tuple[int, ...]:
    values = list(budgets)
    if not values or values[0] < 1 or values != sorted(set(values)):
        raise ValueError(f"budgets: expected ascending numbers >= 1, got {values}")
    return (*(value for value in values if value < n_items), n_items)
