"""Watches a run for a target that leaves what its references span."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.alarm.check import RangeCheck, check_range
from gp_eval.alarm.design import ControlVariate, design_estimate
from gp_eval.alarm.state import Action, RangeState
from gp_eval.data import References
from gp_eval.models.protocol import Performance

__all__ = ["ENOUGH", "OnAlarm", "RangeWatch", "is_look"]

OnAlarm = Literal["fallback", "warn"]
"""What to do when a target is out of range."""

ENOUGH = 30
"""Random items that the design-based estimate needs before it stands alone."""

_FIRST, _GROWTH = 10, 1.5
"""Evaluated items at the first look, and their ratio from look to look."""


def is_look(n: int) -> bool:
    """Whether the range is looked at after ``n`` items: 10, 15, 23, 35, 53, 80 ...

    Few looks, so that few targets raise an alarm by chance at one of them.
    """
    look = _FIRST
    while look < n:
        look = -int(-look * _GROWTH // 1)  # rounded up
    return look == n


class RangeWatch:
    """The alarm of one run, and the estimate that takes over once it is on.

    An alarm is raised at a look and stays on. With ``on_alarm="fallback"`` further
    items are drawn at random, and the estimate is :func:`design_estimate`: items that
    the model had chosen, and scores told without being asked for, were not drawn and
    count as a stratum of their own; a model that had drawn all of its items at random
    has a random sample already. Until :data:`ENOUGH` items are random, and as many as
    the model had chosen, the estimate is the regression on *all* evaluated items, with
    the larger one of its variance and that of the model.

    Everything follows from the scores and the order in which items were asked and told,
    so that a resumed run has the same alarm and draws the same items.

    Args:
        references: The references of the run.
        order: Its random order of the items, a permutation of shape ``N``.
        on_alarm: What to do.
        adapts: Whether the model allows for targets out of range; then there is a
            warning and no more.
    """

    def __init__(
        self,
        references: References,
        order: Tensor,
        *,
        on_alarm: OnAlarm = "fallback",
        adapts: bool = False,
    ) -> None:
        if on_alarm not in ("fallback", "warn"):
            raise ValueError(
                f"on_alarm: expected 'fallback' or 'warn', got {on_alarm!r}"
            )
        self.action: Action = "adapts" if adapts else on_alarm
        self.raised: RangeCheck | None = None
        self._references, self._order = references, order
        self._control: ControlVariate | None = None
        self._drawn_before = False
        self._asked: dict[int, bool] = {}  # and whether after the alarm
        self._values = torch.zeros(len(references.items), dtype=torch.float64)

    @property
    def fallen_back(self) -> bool:
        """Whether items are to be drawn at random and estimated by that."""
        return self.raised is not None and self.action == "fallback"

    @property
    def order(self) -> list[int]:
        """Order to draw items in after a fall back, a permutation.

        It is not the run's own where a model chose items: among items that are the
        same to it, that takes the first ones in the run's order.
        """
        if self._drawn_before:
            return self._order.tolist()
        first, last, size = int(self._order[0]), int(self._order[-1]), len(self._order)
        return random_order(size, first * size + last).tolist()

    def ask(self, item: int) -> None:
        """Note that an item is asked for."""
        self._asked[item] = self.fallen_back

    def due(self, n: int) -> bool:
        """Whether an alarm may be raised once ``n`` items are told."""
        return self.raised is None and is_look(n)

    def tell(self, scores: dict[int, float], *, drawn: bool = False) -> None:
        """Take in the newest of the scores, and look at all of them if it is time to.

        Args:
            scores: All of them, by item, in the order of telling.
            drawn: Whether the model has items drawn at random, and not chosen.
        """
        item = next(reversed(scores))
        self._values[item] = scores[item]
        if not self.due(len(scores)):
            return
        check = self._check(scores)
        if check is not None and check.reason is not None:
            self.raised, self._drawn_before = check, drawn

    def state(self, scores: dict[int, float]) -> RangeState:
        """What there is to say about the range by now."""
        return RangeState(self.raised, self._check(scores), self.action)

    def _check(self, scores: dict[int, float]) -> RangeCheck | None:
        items = torch.tensor(list(scores), dtype=torch.long)
        if items.shape[0] < 2:
            return None
        references = self._references.scores[items]
        if bool(references.isnan().any(0).all()):
            return None
        return check_range(self._values[items], references)

    def belief(self, belief: Performance, scores: dict[int, float]) -> Performance:
        """The model's belief, or after a fall back the one that takes its place.

        Args:
            belief: The model's.
            scores: All scores by item.
        """
        if not self.fallen_back:
            return belief
        drawn, others = self._strata(scores)
        chosen = sum(item in self._asked for item in others.tolist())
        enough = drawn.shape[0] >= max(ENOUGH, chosen)
        if enough or len(scores) == len(self._values):
            return self._estimate(others, drawn)
        evaluated = torch.cat([others, drawn])
        pooled = self._estimate(evaluated[:0], evaluated)
        variance = belief.variance.detach().to(pooled.variance)
        return Performance(pooled.mean, torch.maximum(pooled.variance, variance))

    def _strata(self, scores: dict[int, float]) -> tuple[Tensor, Tensor]:
        """Evaluated items that were drawn at random, and all others."""
        drawn: list[int] = []
        others: list[int] = []
        for item in scores:
            after = self._asked.get(item)
            random = after is not None and (after or self._drawn_before)
            (drawn if random else others).append(item)
        return torch.tensor(drawn, dtype=torch.long), torch.tensor(
            others, dtype=torch.long
        )

    def _estimate(self, certain: Tensor, sampled: Tensor) -> Performance:
        if self._control is None:
            self._control = ControlVariate.of(self._references)
        return design_estimate(
            self._values,
            self._control,
            certain=certain,
            sampled=sampled,
            weights=self._references.item_weights,
        )
