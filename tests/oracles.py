"""Literal, slow formulas over items, written from the paper and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.data import Buckets, References


def covariance_by_loops(phi: Tensor, alpha: float, beta: float) -> Tensor:
    """Eq. (1), entry by entry."""
    size, n_references = phi.shape
    table = torch.empty(size, size, dtype=torch.float64)
    for a in range(size):
        for b in range(size):
            distance = sum(
                (float(phi[a, k]) - float(phi[b, k])) ** 2 for k in range(n_references)
            )
            table[a, b] = alpha * math.exp(-beta / n_references * distance)
    return table


@dataclass
class Problem:
    """A benchmark, a target and the joint Gaussian of all N item scores."""

    references: References
    buckets: Buckets
    scores: Tensor
    alpha: float
    beta: float
    sigma2: float

    @property
    def n_items(self) -> int:
        return len(self.references.items)

    @property
    def ability_covariance(self) -> Tensor:
        return covariance_by_loops(self.buckets.phi, self.alpha, self.beta)

    @property
    def indicator(self) -> Tensor:
        """The paper's H, N x B."""
        matrix = torch.zeros(self.n_items, self.buckets.n_buckets, dtype=torch.float64)
        for i, b in enumerate(self.buckets.item_bucket.tolist()):
            matrix[i, b] = 1.0
        return matrix

    @property
    def item_noise(self) -> Tensor:
        """The paper's D, N x N."""
        sizes = self.indicator @ self.indicator.sum(0)
        return torch.diag(self.sigma2 * sizes)

    @property
    def score_mean(self) -> Tensor:
        return self.references.scores.mean(1)

    @property
    def score_covariance(self) -> Tensor:
        h = self.indicator
        return h @ self.ability_covariance @ h.T + self.item_noise

    @property
    def weights(self) -> Tensor:
        """Weights of the items in R = sum_i w_i s_i."""
        return self.references.item_weights

    def posterior(self, coreset: list[int]) -> tuple[Tensor, Tensor]:
        """Eq. (7), as printed."""
        h = self.indicator[coreset]
        sigma = self.ability_covariance
        mean = self.buckets.phi.mean(1)
        middle = torch.linalg.inv(
            h @ sigma @ h.T + self.item_noise[coreset][:, coreset]
        )
        gain = sigma @ h.T @ middle
        return (
            mean + gain @ (self.scores[coreset] - h @ mean),
            sigma - gain @ h @ sigma,
        )

    def rest(self, coreset: list[int]) -> tuple[list[int], Tensor, Tensor]:
        """Unevaluated items with their joint mean and covariance, by conditioning."""
        rest = [i for i in range(self.n_items) if i not in coreset]
        p, m = self.score_covariance, self.score_mean
        solved = torch.linalg.solve(p[coreset][:, coreset], p[coreset][:, rest])
        mean = m[rest] + solved.T @ (self.scores[coreset] - m[coreset])
        return rest, mean, p[rest][:, rest] - p[rest][:, coreset] @ solved

    def performance(self, coreset: list[int]) -> tuple[float, float]:
        """Mean and variance of R, item by item."""
        rest, mean, covariance = self.rest(coreset)
        w = self.weights
        expected = sum(float(w[i] * self.scores[i]) for i in coreset)
        expected += sum(float(w[i] * m) for i, m in zip(rest, mean, strict=True))
        variance = sum(
            float(w[i] * w[j] * covariance[a, b])
            for a, i in enumerate(rest)
            for b, j in enumerate(rest)
        )
        return expected, variance

    def gain(self, coreset: list[int], batch: list[int]) -> float:
        """Entropy of R before minus after the batch."""
        before = self.performance(coreset)[1]
        after = self.performance(coreset + batch)[1]
        return 0.5 * math.log(before / after)


def make_problem(
    seed: int,
    *,
    counts: tuple[int, ...] = (1, 4, 2, 1, 3, 1, 2),
    n_references: int = 5,
    weighted: bool = False,
    sigma2: float = 0.03,
) -> Problem:
    """A random problem whose items come in shuffled order."""
    generator = torch.Generator().manual_seed(seed)
    phi = torch.rand(
        len(counts), n_references, generator=generator, dtype=torch.float64
    )
    of_item = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    n_items = of_item.shape[0]
    of_item = of_item[torch.randperm(n_items, generator=generator)]
    weights = torch.rand(n_items, generator=generator, dtype=torch.float64) + 0.1
    references = References(
        phi[of_item],
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_references)],
        item_weights=weights if weighted else None,
    )
    return Problem(
        references=references,
        buckets=Buckets.from_references(references),
        scores=torch.rand(n_items, generator=generator, dtype=torch.float64),
        alpha=0.4,
        beta=1.7,
        sigma2=sigma2,
    )
