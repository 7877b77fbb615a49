"""The decision of one run as its scores come in."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gp_eval.data import References
from gp_eval.decision import Decision, check_threshold
from gp_eval.models.protocol import Performance

__all__ = ["Deciding"]


class Deciding:
    """What a run knows about a statement, and the verdict.

    Args:
        decision: The statement and its rule.
        references: The references, for the weights of items and the range of scores.
        batch: Items that an iteration evaluates.

    Raises:
        ValueError: For a threshold in other units than the references' scores.

    Attributes:
        verdict (bool | None): Whether the statement holds, ``None`` if undecided.
        probability (float | None): Its posterior probability, ``None`` if unknown.
    """

    def __init__(
        self, decision: Decision, references: References, *, batch: int = 1
    ) -> None:
        check_threshold(decision, references)
        self.decision, self._batch = decision, batch
        self._n_items = len(references.items)
        weights = references.item_weights.tolist() if references.is_weighted else None
        self._weights: list[float] | None = weights
        self._probabilities: list[float] = []
        self._exact = False
        self.verdict: bool | None = None
        self.probability: float | None = None

    def observe(self, belief: Performance, scores: Mapping[int, float]) -> None:
        """Take in the belief after one more score.

        Args:
            belief: About this target, scalars.
            scores: All scores by item; with ``N`` of them the verdict is that of their
                mean, summed without rounding.
        """
        if len(scores) == self._n_items:
            self._exact = True
            self.verdict = self.decision.holds(self._mean(scores))
            self.probability = float(self.verdict)
            return
        self._probabilities.append(self.look(belief))
        self.verdict = self.decision.verdict(self._probabilities, batch=self._batch)

    def look(self, belief: Performance) -> float:
        """The probability now, NaN if unknown; the verdict stays as it is."""
        now = float(self.decision.probability(belief))
        if not self._exact:
            self.probability = None if math.isnan(now) else now
        return now

    def _mean(self, scores: Mapping[int, float]) -> float:
        if self._weights is None:
            return math.fsum(scores.values()) / self._n_items
        return math.fsum(self._weights[i] * score for i, score in scores.items())
