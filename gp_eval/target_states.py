"""What is asked, told and skipped of each target, and which targets run."""

from __future__ import annotations

import torch

from gp_eval.result import StopReason
from gp_eval.stopping import StoppingRule

__all__ = ["TargetStates"]


class TargetStates:
    """Where each target of a joint run stands, apart from any belief.

    Args:
        n_targets: ``T``.
        n_items: ``N``.
        stop: The rule, for its budget of each target.

    Attributes:
        pending (dict): Pairs ``(target, item)`` asked and not told, in that order.
        skipped (dict): Pairs that cannot be evaluated and stay unobserved.
        scores (list): Scores by item, one dictionary a target.
        stop_reasons (list): Why each target stopped, ``None`` while it runs.
    """

    def __init__(self, n_targets: int, n_items: int, stop: StoppingRule) -> None:
        self.n_targets, self.n_items, self.stop = n_targets, n_items, stop
        self._free = torch.ones(n_targets, n_items, dtype=torch.bool)
        self.pending: dict[tuple[int, int], None] = {}
        self.skipped: dict[tuple[int, int], None] = {}
        self.scores: list[dict[int, float]] = [{} for _ in range(n_targets)]
        self.stop_reasons: list[StopReason | None] = [None] * n_targets
        self._stopped_at: list[int | None] = [None] * n_targets

    @property
    def n(self) -> int:
        """Evaluated pairs, over all targets."""
        return sum(len(scores) for scores in self.scores)

    @property
    def done(self) -> bool:
        """Whether every target has stopped."""
        return all(reason is not None for reason in self.stop_reasons)

    def _running(self) -> list[int]:
        return [t for t, reason in enumerate(self.stop_reasons) if reason is None]

    def _room(self, target: int) -> int:
        """How many more items may be asked of a target."""
        left = self.n_items - self._n_skipped(target)
        budget = min(left, self.stop.max_items or left)
        waiting = sum(1 for t, _ in self.pending if t == target)
        return max(0, budget - len(self.scores[target]) - waiting)

    def _n_skipped(self, target: int) -> int:
        return sum(1 for t, _ in self.skipped if t == target)

    def _nothing_left(self, target: int) -> bool:
        n = len(self.scores[target]) + self._n_skipped(target)
        return n == self.n_items

    def _stop(self, target: int, reason: StopReason) -> None:
        self.stop_reasons[target] = reason
        self._stopped_at[target] = len(self.scores[target])
