"""One model's choice of items with another model's estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.acquisition import BatchSelection
from gp_eval.acquisition.disagreement import DisagreementSelection
from gp_eval.data import References
from gp_eval.models.protocol import (
    Performance,
    PerformanceModel,
    SupportsScoreCheck,
)

__all__ = ["Combined"]

_OF_A_SAMPLE = ("rs-mean", "aipw", "bayes-aipw")


class Combined:
    """A :class:`~gp_eval.models.PerformanceModel` made of two others.

    BayesAME's choice with DISCO's predictor, which is the default, or DISCO's choice
    with any estimator:
    ``make_model("combined", references, estimator="irt-2pl", selector="disco")``.

    Args:
        references: References of both.
        estimator: Registered name of the model that estimates.
        selector: Registered name of the model that chooses the items.
        estimator_options: Options of the former.
        selector_options: Options of the latter.

    Raises:
        ValueError: For an unknown name or option, or an estimator for random items
            (``rs-mean``, ``aipw``, ``bayes-aipw``, and ``bayesame`` where items are not
            nearly unique) with items chosen by disagreement: a plain mean over
            them is off by 14 to 48 points.
    """

    def __init__(
        self,
        references: References,
        *,
        estimator: str = "disco",
        selector: str = "bayesame",
        estimator_options: Mapping[str, Any] | None = None,
        selector_options: Mapping[str, Any] | None = None,
    ) -> None:
        from gp_eval.models.registry import make_model

        self.estimator: PerformanceModel = make_model(
            estimator, references, **dict(estimator_options or {})
        )
        self.selector: PerformanceModel = make_model(
            selector, references, **dict(selector_options or {})
        )
        sampled = estimator in _OF_A_SAMPLE or not getattr(
            self.estimator, "unique", True
        )
        by_disagreement = isinstance(self.selector.acquisition(), DisagreementSelection)
        if sampled and by_disagreement:
            raise ValueError(
                f"estimator: {estimator!r} rests on a mean over random items, and "
                "models disagree on those that 'disco' chooses: it would be off by 14 "
                "to 48 points; use selector_options={'choice': 'random'}, or an "
                "estimator such as 'disco', 'rs-learn' or 'irt-2pl'"
            )

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, in both models.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that
                is not finite; nothing is changed then.
        """
        self.estimator.condition(items, scores)
        self.selector.condition(items, scores)

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that one of both cannot take."""
        for model in (self.estimator, self.selector):
            if isinstance(model, SupportsScoreCheck):
                model.check_score(score)

    def performance(self) -> Performance:
        """Of the estimator."""
        return self.estimator.performance()

    def acquisition(self) -> AcquisitionFunction | None:
        """Of the selector."""
        return self.selector.acquisition()

    @property
    def batch_selection(self) -> BatchSelection | None:
        """Of the selector."""
        return getattr(self.selector, "batch_selection", None)

    @property
    def item_groups(self) -> Tensor | None:
        """Items that the selector cannot tell apart; ``None``: of equal scores."""
        groups = getattr(self.selector, "item_groups", None)
        return None if groups is None else torch.as_tensor(groups)
