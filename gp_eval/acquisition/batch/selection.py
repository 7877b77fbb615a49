"""Selection by optimal batches in a run: all of a batch, or one of its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.acquisition.batch.optimize import optimize_batch

__all__ = ["BatchSelection"]

_DIGITS = 8
"""Items of the run's random order that stand for its seed."""


@dataclass(frozen=True)
class BatchSelection:
    """Myopic and non-myopic selection of Appendix B.1.

    What is selected follows from the model, the items asked so far and the run's
    random order alone, so that a resumed run goes on with the same items and up to the
    next hyperparameter update ``q`` items at once are those of ``q`` single calls: for
    batches of two exactly, for larger ones as far as the search finds the optimum.

    Attributes:
        size: Items of a batch, ``|A|``.
        lookahead: ``False`` evaluates the batch. In the middle of one, what is
            selected is the best completion: items of the batch asked before count like
            any others, and the rest of an optimal batch is optimal given them.
            ``True`` draws one of its items at random and plans anew.
    """

    size: int
    lookahead: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        if type(self.size) is not int or self.size < 1:
            raise ValueError(f"batch: expected at least 1, got {self.size!r}")
        if not isinstance(self.lookahead, bool):
            raise ValueError(
                f"lookahead: expected True or False, got {self.lookahead!r}"
            )

    @property
    def items_per_iteration(self) -> int:
        """Items that an iteration of Algorithm 1 evaluates."""
        return 1 if self.lookahead else self.size

    def next_items(
        self,
        acquisition: AcquisitionFunction,
        available: Tensor,
        *,
        q: int,
        n_evaluated: int,
        pending: Sequence[int],
        same_as: Tensor,
        rank: Tensor,
        order: Sequence[int],
    ) -> list[int]:
        """The next ``q`` items; fewer are returned if there are not so many.

        Args:
            acquisition: See :func:`~gp_eval.acquisition.optimize_batch`, like those
                that are not named here.
            available: Items that may be chosen, booleans of shape ``N``; not changed.
            q: Number of items.
            n_evaluated: Number of items whose scores the model has.
            pending: Items asked before whose scores are not known yet.
            same_as: Bucket of each item, shape ``N``.
            rank: Order of the items of a bucket, shape ``N``.
            order: The run's random order of the items; it stands for the seed.
        """
        left, chosen = available.clone(), list[int]()
        while len(chosen) < q and bool(left.any()):
            waiting = [*pending, *chosen]
            asked = n_evaluated + len(waiting)
            rng = np.random.default_rng([*order[:_DIGITS], asked])
            batch = optimize_batch(
                acquisition,
                self.size - (0 if self.lookahead else asked % self.size),
                left,
                seed=int(rng.integers(2**31)),
                pending=waiting,
                same_as=same_as,
                rank=rank,
            ).items
            if self.lookahead:
                batch = [batch[int(rng.integers(len(batch)))]]
            chosen += batch[: q - len(chosen)]
            left[torch.tensor(chosen)] = False
        return chosen
