"""What the tests of multi-target sessions share: a small model, targets, a driver."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from sessions import NEVER, score_of, unique_references
from torch import Tensor

from gp_eval import MultiTargetSession, Performance, References, Result, register_model

TARGETS = ["a", "b c", "naïve"]
Pair = tuple[str, str]


class SharedMean:
    """Means shrunk towards the mean over all targets, by a strength that is fitted.

    Scores of one target move the estimates of the others, and every update moves all.
    """

    def __init__(
        self,
        references: References,
        *,
        n_targets: int,
        initial_items: int = 3,
        refit_every: int = 10,
    ) -> None:
        self.n_items, self.n_targets = len(references.items), n_targets
        self.prior = float(references.performance.mean())
        self.initial_items, self.refit_every = initial_items, refit_every
        self.strength = 1.0
        self.scores: list[list[float]] = [[] for _ in range(n_targets)]
        self.updates: dict[int, dict[str, list[float]]] = {}
        self.replayed: dict[int, dict[str, list[float]]] = {}
        self.progress: Callable[[int, int], None] | None = None

    def condition(self, items: Tensor, scores: Tensor) -> None:
        for (_, target), score in zip(items.tolist(), scores.tolist(), strict=True):
            self._update_if_due()
            self.scores[target].append(score)

    def performance(self) -> Performance:
        told = [score for scores in self.scores for score in scores]
        shared = (self.prior + math.fsum(told)) / (1 + len(told))
        n = torch.tensor([len(s) for s in self.scores], dtype=torch.float64)
        sums = torch.tensor([math.fsum(s) for s in self.scores], dtype=torch.float64)
        strength = self.strength * (1.0 - n / self.n_items)
        variance = 0.02 * strength / (n + 1.0)
        mean = (sums + strength * shared) / (n + strength)
        return Performance(mean, variance, variance.diag())

    def acquisition(self) -> None:
        self._update_if_due()

    def replay_updates(self, updates: Mapping[int, dict[str, list[float]]]) -> None:
        self.replayed.update(updates)

    def _update_if_due(self) -> None:
        n = sum(len(scores) for scores in self.scores)
        if n == 0 or n % self.refit_every or n in self.updates:
            return
        self.updates[n] = self.replayed.get(n) or {"strength": [self.fit()]}
        (self.strength,) = self.updates[n]["strength"]

    def fit(self) -> float:
        """Called by nothing but an update that is not replayed."""
        for step in range(1, 6):
            if self.progress is not None:
                self.progress(step, 5)
        told = [score for scores in self.scores for score in scores]
        return 1.0 + math.fsum(told) / len(told)


register_model("shared-mean", SharedMean)


def score_for(target: str, item: str) -> float:
    """The score of a target on an item, the same in every process."""
    k = TARGETS.index(target)
    return round(
        score_of(item) * (1.0 - 0.2 * k) + 0.1 * math.sin(k * int(item[1:])), 3
    )


def create(path: Path, **options: Any) -> MultiTargetSession:
    """A session of three targets with the small model, unless told otherwise."""
    usual = {
        "references": unique_references(),
        "targets": TARGETS,
        "model": "shared-mean",
        "stop": NEVER,
    }
    return MultiTargetSession.create(path, **usual | options)


def tell(session: MultiTargetSession, pairs: list[Pair]) -> None:
    for target, item in pairs:
        session.tell(target, item, score_for(target, item))


def evaluate(session: MultiTargetSession, n: int, *, q: int = 1) -> list[Pair]:
    """Ask for ``n`` pairs, ``q`` at a time, and tell their scores."""
    pairs: list[Pair] = []
    while len(pairs) < n:
        asked = session.ask(min(q, n - len(pairs)))
        assert asked, "nothing left to ask"
        tell(session, asked)
        pairs += asked
    return pairs


def finish(session: MultiTargetSession, *, q: int = 1) -> list[Result]:
    """Evaluate what is pending, then go on until done."""
    tell(session, session.pending)
    while not session.done:
        tell(session, session.ask(q))
    return session.estimates()


def resume(path: Path) -> list[Result]:
    """Open, look, close."""
    with MultiTargetSession.open(path) as session:
        return session.estimates()
