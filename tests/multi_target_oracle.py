"""Literal, slow formulas over pairs of target and item, from Section 3.2 alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from oracles import covariance_by_loops, make_problem
from torch import Tensor

from gp_eval.data import Buckets, References
from gp_eval.kernels import LMCKernel, ReferenceMaternKernel, ReferenceScoreKernel
from gp_eval.models import SequentialMultiTargetModel

Pair = tuple[int, int]
"""Target and item."""


def matern_by_loops(phi: Tensor, alpha: float, beta: float) -> Tensor:
    """The Matern-3/2 formula of Section 3.2, entry by entry."""
    table = torch.empty(phi.shape[0], phi.shape[0], dtype=torch.float64)
    for a, left in enumerate(phi.tolist()):
        for b, right in enumerate(phi.tolist()):
            scaled = math.sqrt(3.0) * beta * math.dist(left, right)
            table[a, b] = alpha * (1.0 + scaled) * math.exp(-scaled)
    return table


@dataclass
class MultiTargetProblem:
    """A benchmark, T targets and the joint Gaussian of all T N scores.

    Latent ``l`` is squared exponential if ``l`` is even, Matern-3/2 if it is odd.
    """

    references: References
    buckets: Buckets
    scores: Tensor
    """T x N."""
    task_weights: Tensor
    """L x T."""
    alphas: list[float]
    betas: list[float]
    sigma2: float

    @property
    def n_items(self) -> int:
        return self.scores.shape[1]

    @property
    def n_targets(self) -> int:
        return self.scores.shape[0]

    def at(self, pair: Pair) -> int:
        """Place of a pair among the T N scores."""
        return pair[0] * self.n_items + pair[1]

    @cached_property
    def pairs(self) -> list[Pair]:
        return [(t, i) for t in range(self.n_targets) for i in range(self.n_items)]

    @cached_property
    def latent_covariances(self) -> list[Tensor]:
        """Sigma_l, each B x B."""
        formulas = (covariance_by_loops, matern_by_loops)
        return [
            formulas[latent % 2](self.buckets.phi, alpha, beta)
            for latent, (alpha, beta) in enumerate(
                zip(self.alphas, self.betas, strict=True)
            )
        ]

    @cached_property
    def ability_covariance(self) -> Tensor:
        """sum_l w_l w_l^T (x) Sigma_l, T B x T B."""
        return sum(
            torch.kron(torch.outer(w, w), covariance)
            for w, covariance in zip(
                self.task_weights, self.latent_covariances, strict=True
            )
        )

    @cached_property
    def score_covariance(self) -> Tensor:
        """Covariance of all T N scores, entry by entry."""
        bucket = self.buckets.item_bucket.tolist()
        size = self.buckets.n_buckets
        ability = [t * size + bucket[i] for t, i in self.pairs]
        covariance = self.ability_covariance[ability][:, ability].clone()
        for place, (_, item) in enumerate(self.pairs):
            n_b = sum(1 for b in bucket if b == bucket[item])
            covariance[place, place] += self.sigma2 * n_b
        return covariance

    @property
    def score_mean(self) -> Tensor:
        return self.references.scores.mean(1).repeat(self.n_targets)

    @property
    def weights(self) -> Tensor:
        """Weights of the items in R = sum_i w_i s_i, shape N."""
        return self.references.item_weights

    def posterior(self, coreset: list[Pair]) -> tuple[Tensor, Tensor]:
        """Mean and covariance of the T B abilities given the scores of pairs."""
        size = self.buckets.n_buckets
        bucket = self.buckets.item_bucket.tolist()
        prior = self.ability_covariance
        mean = self.buckets.phi.mean(1).repeat(self.n_targets)
        places = [self.at(pair) for pair in coreset]
        ability = [t * size + bucket[i] for t, i in coreset]
        cross = prior[:, ability]
        inverse = torch.linalg.inv(self.score_covariance[places][:, places])
        residual = self.scores.reshape(-1)[places] - mean[ability]
        return (
            mean + cross @ inverse @ residual,
            prior - cross @ inverse @ cross.T,
        )

    def given(self, coreset: list[Pair]) -> tuple[Tensor, Tensor]:
        """Mean and covariance of all T N scores; those of pairs known are exact."""
        places = [self.at(pair) for pair in coreset]
        rest = [p for p in range(len(self.pairs)) if p not in set(places)]
        known = self.scores.reshape(-1)
        prior, mean = self.score_covariance, self.score_mean.clone()
        covariance = torch.zeros_like(prior)
        solved = torch.linalg.solve(
            prior[places][:, places], prior[places][:, rest]
        ).reshape(len(places), len(rest))
        mean[rest] += solved.T @ (known[places] - mean[places])
        mean[places] = known[places]
        grid = torch.tensor(rest, dtype=torch.long)
        covariance[grid.unsqueeze(-1), grid] = (
            prior[rest][:, rest] - prior[rest][:, places] @ solved
        )
        return mean, covariance

    def performance(self, coreset: list[Pair]) -> tuple[Tensor, Tensor]:
        """Means ``T`` and joint covariance ``T x T`` of the benchmark scores."""
        mean, covariance = self.given(coreset)
        size = self.n_targets
        blocks = covariance.view(size, self.n_items, size, self.n_items)
        w = self.weights
        return (
            mean.view(size, -1) @ w,
            torch.einsum("i,tiuj,j->tu", w, blocks, w),
        )

    def estimate(self, coreset: list[Pair], target: int) -> float:
        """Eq. (5) with 1 / n, item by item; needs a score of the target."""
        mean, _ = self.posterior(coreset)
        mu = mean.view(self.n_targets, -1)[target][self.buckets.item_bucket].tolist()
        weights = (self.weights * self.n_items).tolist()
        items = [i for t, i in coreset if t == target]
        control = sum(
            weights[i] * (float(self.scores[target, i]) - mu[i]) for i in items
        )
        average = sum(w * m for w, m in zip(weights, mu, strict=True))
        return control / len(items) + average / self.n_items

    def gain(self, coreset: list[Pair], batch: list[Pair], target: int) -> float:
        """Entropy of the target's benchmark score before minus after the batch."""
        new = [pair for pair in batch if pair not in coreset]
        before = self.performance(coreset)[1][target, target]
        after = self.performance(coreset + new)[1][target, target]
        return 0.5 * math.log(float(before / after)) if new else 0.0

    def average_gain(self, coreset: list[Pair], items: list[int]) -> float:
        """Mean over targets of the gain about each by its own scores of the items."""
        gains = [
            self.gain(coreset, [(t, i) for i in items], t)
            for t in range(self.n_targets)
        ]
        return sum(gains) / len(gains)

    def kernel(self) -> LMCKernel:
        """The prior as a kernel of ours."""
        families = (ReferenceScoreKernel, ReferenceMaternKernel)
        latents = []
        for latent, (alpha, beta) in enumerate(
            zip(self.alphas, self.betas, strict=True)
        ):
            kernel = families[latent % 2]().double()
            kernel.alpha, kernel.beta = alpha, beta
            latents.append(kernel)
        made = LMCKernel(latents, self.n_targets).double()
        with torch.no_grad():
            made.task_weights.copy_(self.task_weights)
        return made

    def model(self, coreset: list[Pair] = ()) -> SequentialMultiTargetModel:
        """The engine with that prior, conditioned pair by pair."""
        made = SequentialMultiTargetModel(
            self.buckets,
            n_targets=self.n_targets,
            noise=self.sigma2,
            covar_module=self.kernel(),
        )
        for pair in coreset:
            self.tell(made, pair)
        return made

    def tell(self, model: SequentialMultiTargetModel, pair: Pair) -> None:
        model.append(self.at(pair), float(self.scores[pair]))


def make_multi_target_problem(
    seed: int = 0,
    *,
    n_targets: int = 3,
    n_latents: int | None = None,
    counts: tuple[int, ...] = (1, 4, 2, 1, 3, 1, 2),
    weighted: bool = False,
    sigma2: float = 0.03,
) -> MultiTargetProblem:
    """Random targets and a random prior on a random benchmark."""
    base = make_problem(seed, counts=counts, weighted=weighted)
    generator = torch.Generator().manual_seed(100 + seed)
    size = n_latents or n_targets

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    return MultiTargetProblem(
        references=base.references,
        buckets=base.buckets,
        scores=draw(n_targets, base.n_items),
        task_weights=draw(size, n_targets) - 0.4,
        alphas=(0.2 + draw(size)).tolist(),
        betas=(0.5 + draw(size)).tolist(),
        sigma2=sigma2,
    )


def ragged(problem: MultiTargetProblem) -> list[Pair]:
    """A coreset of a size of its own for each target, none for the last one."""
    generator = torch.Generator().manual_seed(7)
    pairs = [
        (target, item)
        for target in range(problem.n_targets - 1)
        for item in torch.randperm(problem.n_items, generator=generator)[
            : 2 + 3 * target % 8
        ].tolist()
    ]
    order = torch.randperm(len(pairs), generator=generator).tolist()
    return [pairs[i] for i in order]


def disjoint(problem: MultiTargetProblem) -> list[Pair]:
    """Every item known of one target only."""
    return [(i % problem.n_targets, i) for i in range(problem.n_items - 2)]


def identical(problem: MultiTargetProblem) -> MultiTargetProblem:
    """The first two targets alike in scores and prior."""
    problem.scores[1] = problem.scores[0]
    problem.task_weights[:, 1] = problem.task_weights[:, 0]
    return problem
