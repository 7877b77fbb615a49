"""The sequential process: choose an item, take its score, decide whether to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction

from gp_eval._random import random_order
from gp_eval.acquisition import BatchSelection, select_items
from gp_eval.alarm import OnAlarm, RangeState, RangeWatch
from gp_eval.data import References
from gp_eval.models.protocol import AdaptsOffRange, PerformanceModel
from gp_eval.models.registry import make_model
from gp_eval.stopping import StoppingRule

__all__ = ["EvaluationLoop", "Result", "StopReason", "evaluate"]

StopReason = Literal["converged", "max_items", "complete"]


@dataclass(frozen=True)
class Result:
    """Where a run stands.

    Attributes:
        target: Name of the evaluated model.
        mean: Estimate of the full-benchmark score, in score units.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        n: Evaluated items.
        N: Items of the benchmark.
        stop_reason: ``"converged"`` (both conditions hold), ``"max_items"`` (the
            budget is spent), ``"complete"`` (nothing is left; what was skipped stays
            unobserved), or ``None``.
        items: Evaluated items in their order.
        estimates: Estimate after each item.
        widths: Width of the 95 % interval after each item.
        stopped_at: ``n`` at which it stopped; later scores are taken in as well.
        range: Whether the target left what its references span.
    """

    target: str
    mean: float
    low: float
    high: float
    n: int
    N: int
    stop_reason: StopReason | None
    items: list[str] = field(repr=False)
    estimates: list[float] = field(repr=False)
    widths: list[float] = field(repr=False)
    stopped_at: int | None = None
    range: RangeState | None = field(default=None, repr=False)

    @property
    def width(self) -> float:
        """Full width of the 95 % interval."""
        return self.high - self.low


class EvaluationLoop:
    """Algorithm 1 as a state machine in memory, for any model of the harness.

    Items asked and not yet told are pending: they are never asked again, and the next
    choice is made as if they were evaluated already. Until the next hyperparameter
    update ``ask(q)`` therefore equals ``q`` single asks. Items that cannot be evaluated
    are skipped: they count among the ``N`` and stay unobserved.

    Args:
        model: The belief about the target.
        references: The references it was built from.
        stop: When to stop.
        seed: Fixes the order of random selection and of items within a bucket.
        order: That order itself, a permutation of shape ``N``, in place of a seed.
        on_alarm: What to do when the target is out of the range of the references, see
            :class:`~gp_eval.alarm.RangeWatch`; ``"warn"`` is the published algorithm.
    """

    def __init__(
        self,
        model: PerformanceModel,
        references: References,
        *,
        stop: StoppingRule,
        seed: int = 0,
        order: torch.Tensor | None = None,
        on_alarm: OnAlarm = "warn",
    ) -> None:
        self.model, self.stop = model, stop
        n_items = len(references.items)
        if order is None:
            order = random_order(n_items, seed)
        self._order: list[int] = order.tolist()
        self._rank = torch.argsort(order)
        groups = getattr(model, "item_groups", None)
        self._same_as = _equal_items(references) if groups is None else groups
        self._batches: BatchSelection | None = getattr(model, "batch_selection", None)
        self._available = torch.ones(n_items, dtype=torch.bool)
        self._watch = RangeWatch(
            references,
            order,
            on_alarm=on_alarm,
            adapts=isinstance(model, AdaptsOffRange) and model.adapts_off_range,
        )
        self.n_items = n_items
        self.pending: dict[int, None] = {}
        self.skipped: dict[int, None] = {}
        self.scores: dict[int, float] = {}
        self.estimates: list[float] = []
        self.widths: list[float] = []
        self.stop_reason: StopReason | None = None
        self.stopped_at: int | None = None
        self._assess()

    @property
    def n(self) -> int:
        """Evaluated items."""
        return len(self.scores)

    @property
    def done(self) -> bool:
        """Whether the run has stopped."""
        return self.stop_reason is not None

    def ask(self, q: int = 1) -> list[int]:
        """The next ``q`` items; fewer near the end, none once stopped."""
        q = min(q, self._left_to_ask())
        if self.done or q < 1:
            return []
        drawn = self._watch.order if self._watch.fallen_back else None
        acquisition = None if drawn is not None else self.model.acquisition()
        if acquisition is None:
            free = (i for i in drawn or self._order if self._available[i])
            chosen = list(islice(free, q))
        else:
            chosen = self._select(acquisition, q)
        for item in chosen:
            self.reserve(item)
        return chosen

    def _select(self, acquisition: AcquisitionFunction, q: int) -> list[int]:
        """The next ``q`` items by acquisition: one by one, or in optimal batches."""
        if self._batches is None:
            return select_items(
                acquisition,
                self._available,
                q=q,
                pending=list(self.pending),
                same_as=self._same_as,
                rank=self._rank,
            )
        return self._batches.next_items(
            acquisition,
            self._available,
            q=q,
            n_evaluated=self.n,
            pending=list(self.pending),
            same_as=self._same_as,
            rank=self._rank,
            order=self._order,
        )

    def reserve(self, item: int) -> None:
        """Count an item as asked."""
        self.pending[item] = None
        self._available[item] = False
        self._watch.ask(item)

    def tell(self, item: int, score: float) -> None:
        """Take in the score of an item, asked or not, and see whether to stop."""
        value = torch.tensor([score], dtype=torch.float64)
        drawn = self._watch.due(self.n + 1) and self.model.acquisition() is None
        self.model.condition(torch.tensor([item]), value)
        self.pending.pop(item, None)
        self.skipped.pop(item, None)
        self._available[item] = False
        self.scores[item] = score
        self._watch.tell(self.scores, drawn=drawn)
        self._assess()

    def skip(self, item: int) -> None:
        """Leave an item without a score unobserved for good, unless one is told."""
        self.pending.pop(item, None)
        self._available[item] = False
        self.skipped[item] = None
        if not self.done and self._nothing_left():
            self._stop("complete")

    def _nothing_left(self) -> bool:
        return self.n + len(self.skipped) == self.n_items

    def _stop(self, reason: StopReason) -> None:
        self.stop_reason, self.stopped_at = reason, self.n

    def _left_to_ask(self) -> int:
        budget = self.n_items - len(self.skipped)
        if self.stop.max_items is not None:
            budget = min(budget, self.stop.max_items)
        return budget - self.n - len(self.pending)

    @property
    def per_iteration(self) -> int:
        """Items that an iteration of Algorithm 1 evaluates: a batch, or one."""
        return 1 if self._batches is None else self._batches.items_per_iteration

    def _assess(self) -> None:
        belief = self._watch.belief(self.model.performance(), self.scores)
        self.estimate, self.width = float(belief.mean), float(belief.width())
        self.variance = float(belief.variance)
        if not self.n:
            return
        self.estimates.append(self.estimate)
        self.widths.append(self.width)
        if self.done:
            return
        if self._nothing_left():
            self._stop("complete")
        elif self.stop.met(self.estimates, self.width, batch=self.per_iteration):
            self._stop("converged")
        elif self.stop.max_items is not None and self.n >= self.stop.max_items:
            self._stop("max_items")

    def result(self, target: str, items: tuple[str, ...]) -> Result:
        """Where the run stands, with the given item ids."""
        return Result(
            target=target,
            mean=self.estimate,
            low=self.estimate - self.width / 2,
            high=self.estimate + self.width / 2,
            n=self.n,
            N=self.n_items,
            stop_reason=self.stop_reason,
            items=[items[i] for i in self.scores],
            estimates=list(self.estimates),
            widths=list(self.widths),
            stopped_at=self.stopped_at,
            range=self._watch.state(self.scores),
        )


def _equal_items(references: References) -> torch.Tensor:
    """Group of each item; items of a group are the same to every reference."""
    return torch.unique(references.scores, dim=0, return_inverse=True)[1]


def evaluate(
    references: References,
    score: Callable[[str], float],
    *,
    target: str = "target",
    model: str | PerformanceModel = "bayesame",
    stop: StoppingRule | None = None,
    seed: int = 0,
    on_alarm: OnAlarm = "fallback",
) -> Result:
    """Evaluate one target until the rule says stop, in memory.

    For runs that must survive a kill, use :class:`~gp_eval.Session`.

    Args:
        references: Reference scores of the benchmark.
        score: Runs the target on one item id and returns its score.
        target: Name of the target.
        model: A registered name, or a fresh model built from ``references``.
        stop: Default that of :class:`~gp_eval.StoppingRule`.
        seed: Fixes the run.
        on_alarm: What to do when the target is out of the range of the references.

    Example:
        >>> result = evaluate(references, lambda item: float(my_model_is_right(item)))
        >>> print(result.mean, result.low, result.high, result.n)
    """
    if isinstance(model, str):
        model = make_model(model, references)
    loop = EvaluationLoop(
        model, references, stop=stop or StoppingRule(), seed=seed, on_alarm=on_alarm
    )
    while not loop.done:
        for item in loop.ask():
            loop.tell(item, float(score(references.items[item])))
    return loop.result(target, references.items)
