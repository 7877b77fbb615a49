"""The sequential process for several targets, each with a coreset of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.acquisition import qAverageInformationGain
from gp_eval.acquisition.select import best_candidate, pair_values
from gp_eval.alarm import RangeWatch
from gp_eval.data import References
from gp_eval.deciding import Deciding
from gp_eval.models.protocol import MultiTargetModel, Performance, SupportsBegin
from gp_eval.result import Result, StopReason
from gp_eval.stopping import StoppingRule
from gp_eval.target_states import TargetStates

__all__ = ["MultiTargetLoop"]


class MultiTargetLoop(TargetStates):
    """Section 3.2 of the BayesAME paper as a state machine in memory.

    First all targets are evaluated on the same random items. Then the targets take
    turns, each with the item that tells most about its own score; with
    :class:`~gp_eval.acquisition.qAverageInformationGain` an item is chosen for all
    targets and one of them drawn. A target that has met its rule gets no more items of
    its own and keeps informing the others.

    Pairs asked and not yet told are pending: they are never asked again, and the next
    choice is made as if they were evaluated already. Up to the next hyperparameter
    update ``ask(q)`` therefore equals ``q`` single asks. Nothing else is asked before
    the scores of the initial items are there, for the correlation of the targets is
    learned from them.

    Args:
        model: The joint belief about the ``T`` targets.
        references: The references it was built from.
        stop: When to stop; each target by itself, looked at after each of its own
            evaluations, which the window is over.
        seed: Fixes the initial items and every other random choice.
        order: A permutation of the items, shape ``N``, in place of the one by seed.

    Raises:
        ValueError: For a rule with ``max_cost``, or a threshold in other units than the
            references' scores.
    """

    def __init__(
        self,
        model: MultiTargetModel,
        references: References,
        *,
        stop: StoppingRule,
        seed: int = 0,
        order: Tensor | None = None,
    ) -> None:
        if stop.max_cost is not None:
            raise ValueError(
                "max_cost: several targets have no budget in common; use one session "
                "each"
            )
        super().__init__(model.n_targets, len(references.items), stop)
        self.model = model
        if order is None:
            order = random_order(self.n_items, seed)
        self._order: list[int] = order.tolist()
        if stop.max_items is not None:
            # No more than the budget, or the model would never be trained.
            model.initial_items = min(model.initial_items, stop.max_items)
        self._initial = self._order[: model.initial_items]
        # What may be chosen is a pair, counted target by target.
        shift = torch.arange(self.n_targets).repeat_interleave(self.n_items)
        groups = getattr(model, "item_groups", None)
        if groups is None:
            groups = torch.unique(references.scores, dim=0, return_inverse=True)[1]
        self._same_as = groups.repeat(self.n_targets) + shift * self.n_items
        self._rank = torch.argsort(order).repeat(self.n_targets)
        self._turn = 0
        self._estimates: list[list[float]] = [[] for _ in range(self.n_targets)]
        self._widths: list[list[float]] = [[] for _ in range(self.n_targets)]
        self._untrained = [0] * self.n_targets
        self._deciding: list[Deciding] = []
        if stop.until is not None:
            self._deciding = [
                Deciding(stop.until, references) for _ in range(self.n_targets)
            ]
        self._watches = [
            RangeWatch(references, order, on_alarm="warn")
            for _ in range(self.n_targets)
        ]

    def performance(self) -> Performance:
        """The joint belief at present, shape ``T``."""
        return self.model.performance()

    # Asking

    def ask(self, q: int = 1) -> list[tuple[int, int]]:
        """The next ``q`` pairs ``(target, item)``; fewer near the end, none once done.

        Until the initial items are told for all targets there is nothing beyond them.
        """
        if not self.initial_left():
            return self._next_chosen(q)
        chosen = self._next_initial(q)
        for target, item in chosen:
            self.reserve(target, item)
        return chosen

    def reserve(self, target: int, item: int) -> None:
        """Count a pair as asked."""
        self._free[target, item] = False
        self.pending[target, item] = None
        if not self.initial_left():
            self._turn = (target + 1) % self.n_targets

    def initial_left(self) -> int:
        """Initial items of running targets that are neither told nor skipped.

        Before that is 0 the model is not trained, and its estimates mean nothing.
        """
        return sum(
            item not in self.scores[target] and (target, item) not in self.skipped
            for target in self._running()
            for item in self._initial
        )

    def _next_initial(self, q: int) -> list[tuple[int, int]]:
        """Initial items not asked yet, item by item over all running targets."""
        room = {target: self._room(target) for target in self._running()}
        chosen: list[tuple[int, int]] = []
        for item in self._initial:
            for target in room:
                if len(chosen) < q and room[target] and self._free[target, item]:
                    chosen.append((target, item))
                    room[target] -= 1
        return chosen

    def _next_chosen(self, q: int) -> list[tuple[int, int]]:
        """Pairs by the model's acquisition, or at random, reserved one by one."""
        acquisition = self.model.acquisition()
        if acquisition is None:
            return self._take(q, self._at_random)
        model: Any = acquisition.model
        with model.lookahead() as add:
            for target, item in self.pending:
                add(target * self.n_items + item)

            def choose() -> tuple[int, int] | None:
                pair = self._by_gain(acquisition)
                if pair is not None:
                    add(pair[0] * self.n_items + pair[1])
                return pair

            return self._take(q, choose)

    def _take(
        self, q: int, choose: Callable[[], tuple[int, int] | None]
    ) -> list[tuple[int, int]]:
        chosen: list[tuple[int, int]] = []
        while len(chosen) < q and (pair := choose()) is not None:
            self.reserve(*pair)
            chosen.append(pair)
        return chosen

    def _at_random(self) -> tuple[int, int] | None:
        """An item of the next target, in that target's own random order."""
        target = self._next_target()
        if target is None:
            return None
        own = random_order(self.n_items, target).tolist()
        items = (self._order[i] for i in own)
        return target, next(i for i in items if self._free[target, i])

    def _by_gain(self, acquisition: AcquisitionFunction) -> tuple[int, int] | None:
        if isinstance(acquisition, qAverageInformationGain):
            return self._by_average_gain(acquisition)
        target = self._next_target()
        if target is None:
            return None
        items = torch.nonzero(self._free[target]).squeeze(-1)
        pairs = items + target * self.n_items
        values = pair_values(acquisition, pairs, self.n_items)
        best = best_candidate(values, pairs, self._same_as, self._rank)
        return target, best - target * self.n_items

    def _by_average_gain(
        self, acquisition: qAverageInformationGain
    ) -> tuple[int, int] | None:
        """The item of highest average gain, for one of the targets that lack it."""
        running = [target for target in self._running() if self._room(target)]
        items = torch.nonzero(self._free[running].any(0)).squeeze(-1)
        if not items.shape[0]:
            return None
        values = acquisition.of_items(items.unsqueeze(-1)).cpu()
        item = best_candidate(values, items, self._same_as, self._rank)
        lacking = [target for target in running if self._free[target, item]]
        # By the number of pairs handed out, so that a resumed run draws the same, and
        # by the order, in which seeds differ.
        count = self.n + len(self.pending)
        seed = self._order[count % self.n_items] + self.n_items * count
        draw = random_order(len(lacking), seed)
        return lacking[int(draw[0])], item

    def _next_target(self) -> int | None:
        """The running target whose turn it is and that may be given an item."""
        for step in range(self.n_targets):
            target = (self._turn + step) % self.n_targets
            if self.stop_reasons[target] is None and self._room(target):
                return target
        return None

    # Telling

    def tell(self, target: int, item: int, score: float) -> None:
        """Take in the score of a pair, asked or not, and see which targets stop."""
        row = torch.tensor([[item, target]])
        self.model.condition(row, torch.tensor([score], dtype=torch.float64))
        self.pending.pop((target, item), None)
        self.skipped.pop((target, item), None)
        self._free[target, item] = False
        self.scores[target][item] = score
        self._watches[target].tell(self.scores[target])
        self._begin_if_due()
        belief = self.model.performance()
        width = float(belief.width()[target])
        self._estimates[target].append(float(belief.mean[target]))
        self._widths[target].append(width)
        if self.initial_left():
            self._untrained[target] = len(self._estimates[target])
        self._decide(target, belief)
        reason = self._reason(target, width)
        if self.stop_reasons[target] is None and reason is not None:
            self._stop(target, reason)

    def _decide(self, target: int, belief: Performance) -> None:
        exact = len(self.scores[target]) == self.n_items
        if self._deciding and (exact or not self.initial_left()):
            self._deciding[target].observe(belief.of(target), self.scores[target])

    def skip(self, target: int, item: int) -> None:
        """Leave a pair without a score unobserved for good, unless one is told."""
        self.pending.pop((target, item), None)
        self._free[target, item] = False
        self.skipped[target, item] = None
        if self.stop_reasons[target] is None and self._nothing_left(target):
            self._stop(target, "complete")
        self._begin_if_due()

    def _begin_if_due(self) -> None:
        """Tell a model that counts scores when the initial items are dealt with.

        Where one was skipped it would wait for a score that never comes.
        """
        if isinstance(self.model, SupportsBegin) and not self.initial_left():
            self.model.begin()

    def _reason(self, target: int, width: float) -> StopReason | None:
        n = len(self.scores[target])
        if self._nothing_left(target):
            return "complete"
        if self._deciding and self._deciding[target].verdict is not None:
            return "decided"
        # Estimates mean nothing before the first training.
        estimates = self._estimates[target][self._untrained[target] :]
        if not self.initial_left() and self.stop.met(estimates, width):
            return "converged"
        if self.stop.max_items is not None and n >= self.stop.max_items:
            return "max_items"
        return None

    def results(self, targets: Sequence[str], items: Sequence[str]) -> list[Result]:
        """Where each target stands, with the given names."""
        belief = self.model.performance()
        low, high = belief.interval()
        return [
            Result(
                target=name,
                mean=float(belief.mean[t]),
                low=float(low[t]),
                high=float(high[t]),
                n=len(self.scores[t]),
                N=self.n_items,
                stop_reason=self.stop_reasons[t],
                items=[items[i] for i in self.scores[t]],
                estimates=list(self._estimates[t]),
                widths=list(self._widths[t]),
                stopped_at=self._stopped_at[t],
                **self._decided(t, belief),
                range=self._watches[t].state(self.scores[t]),
            )
            for t, name in enumerate(targets)
        ]

    def _decided(self, target: int, belief: Performance) -> dict[str, Any]:
        if not self._deciding:
            return {}
        deciding = self._deciding[target]
        deciding.look(belief.of(target))  # what others told may have moved it
        return {"verdict": deciding.verdict, "probability": deciding.probability}
