"""The sequential process: choose an item, take its score, decide whether to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby, islice

import torch
from botorch.acquisition.acquisition import AcquisitionFunction

from gp_eval._random import random_order
from gp_eval.acquisition import BatchSelection, select_items
from gp_eval.alarm import OnAlarm, RangeWatch
from gp_eval.costs import ItemCosts
from gp_eval.data import References
from gp_eval.deciding import Deciding
from gp_eval.models.protocol import AdaptsOffRange, PerformanceModel
from gp_eval.result import Result, StopReason
from gp_eval.spending import Spending, check_costs
from gp_eval.stopping import StoppingRule

__all__ = ["EvaluationLoop", "Result", "StopReason"]


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
        costs: What items cost. With ``max_cost`` no item is asked that costs more than
            is left; pending ones count.
        cost_aware: Select by information per cost, see
            :class:`~gp_eval.acquisition.qGainPerCost`; default where the model selects
            by information.
        on_alarm: What to do when the target is out of the range of the references, see
            :class:`~gp_eval.alarm.RangeWatch`; ``"warn"`` is the published algorithm.

    Raises:
        ValueError: For a budget or ``cost_aware`` that costs or model do not allow, or
            a threshold in other units than the references' scores.
    """

    def __init__(
        self,
        model: PerformanceModel,
        references: References,
        *,
        stop: StoppingRule,
        seed: int = 0,
        order: torch.Tensor | None = None,
        costs: ItemCosts | None = None,
        cost_aware: bool | None = None,
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
        self._explores: Callable[[int], bool] | None = getattr(model, "explores", None)
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
        self.deciding: Deciding | None = None
        if stop.until is not None:
            batch = self.per_iteration
            self.deciding = Deciding(stop.until, references, batch=batch)
        check_costs(costs, max_cost=stop.max_cost, cost_aware=cost_aware)
        self.spending: Spending | None = None
        if costs is not None:
            self.spending = Spending(
                model, costs, max_cost=stop.max_cost, cost_aware=cost_aware
            )
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
        acquisition = None if self._watch.fallen_back else self.model.acquisition()
        if acquisition is None:
            chosen = self._draw(q)
        elif self._explores is not None:
            return self._mix(acquisition, q, self._explores)
        else:
            chosen = self._select(acquisition, q)
        for item in chosen:
            self.reserve(item)
        return chosen

    def _draw(self, q: int) -> list[int]:
        """The next ``q`` items in the order of random selection."""
        free = (i for i in self._drawing_order() if self._available[i])
        if self.spending is not None:
            return self.spending.purse.first(free, q)
        return list(islice(free, q))

    def _drawing_order(self) -> list[int]:
        return self._watch.order if self._watch.fallen_back else self._order

    def _mix(
        self,
        acquisition: AcquisitionFunction,
        q: int,
        explores: Callable[[int], bool],
    ) -> list[int]:
        """The next ``q`` items, each drawn or selected as its position says."""
        start = self.n + len(self.pending)
        chosen: list[int] = []
        for at_random, places in groupby(range(start, start + q), key=explores):
            wanted = len(list(places))
            drawn = self._draw(wanted) if at_random else []
            for item in drawn:
                self.reserve(item)
            # Also where a drawn item would cost too much, for another may not.
            left = wanted - len(drawn)
            selected = self._select(acquisition, left) if left else []
            for item in selected:
                self.reserve(item)
            chosen += drawn + selected
        return chosen

    def _select(self, acquisition: AcquisitionFunction, q: int) -> list[int]:
        """The next ``q`` items by acquisition: one by one, or in optimal batches."""
        if self._batches is None:
            spending = self.spending
            return select_items(
                acquisition if spending is None else spending.weigh(acquisition),
                self._available,
                q=q,
                pending=list(self.pending),
                same_as=self._same_as,
                rank=self._rank,
                allowed=None if spending is None else spending.purse.affordable,
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
        if self.spending is not None:
            self.spending.purse.commit(item)
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
        if self.spending is not None:
            self.spending.purse.commit(item)
        self._watch.tell(self.scores, drawn=drawn)
        self._assess()

    def skip(self, item: int) -> None:
        """Leave an item without a score unobserved for good, unless one is told."""
        self.pending.pop(item, None)
        self._available[item] = False
        self.skipped[item] = None
        if self.done:
            return
        if self._nothing_left():
            self._stop("complete")
        elif self._budget_spent():
            self._stop("budget")

    def _nothing_left(self) -> bool:
        return self.n + len(self.skipped) == self.n_items

    def _stop(self, reason: StopReason) -> None:
        self.stop_reason, self.stopped_at = reason, self.n

    def _budget_spent(self) -> bool:
        if self.spending is None or self.pending:
            return False
        if self._watch.fallen_back:
            return not self._draw(1)
        return self.spending.exhausted(self._order, self._available)

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
        self.dof = math.inf if belief.dof is None else float(belief.dof)
        if not self.n:
            return
        self.estimates.append(self.estimate)
        self.widths.append(self.width)
        if self.deciding is not None:
            self.deciding.observe(belief, self.scores)
        if self.done:
            return
        if self._nothing_left():
            self._stop("complete")
        elif self.deciding is not None and self.deciding.verdict is not None:
            self._stop("decided")
        elif self.stop.met(self.estimates, self.width, batch=self.per_iteration):
            self._stop("converged")
        elif self.stop.max_items is not None and self.n >= self.stop.max_items:
            self._stop("max_items")
        elif self._budget_spent():
            self._stop("budget")

    @property
    def cost(self) -> float | None:
        """What was spent on evaluated items, and on skipped ones that were asked."""
        if self.spending is None:
            return None
        purse = self.spending.purse
        return purse.costs.total(i for i in purse.committed if i not in self.pending)

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
            verdict=None if self.deciding is None else self.deciding.verdict,
            probability=None if self.deciding is None else self.deciding.probability,
            cost=self.cost,
            range=self._watch.state(self.scores),
        )


def _equal_items(references: References) -> torch.Tensor:
    """Group of each item; items of a group are the same to every reference."""
    return torch.unique(references.scores, dim=0, return_inverse=True)[1]
