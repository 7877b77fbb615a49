"""What every model of the harness can do, whatever method is behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.intervals import half_width, probability_below

__all__ = [
    "AdaptsOffRange",
    "Hyperparameters",
    "LeaveOneOut",
    "MultiTargetModel",
    "Performance",
    "PerformanceModel",
    "SupportsBegin",
    "SupportsItemBelief",
    "SupportsRefit",
    "SupportsScoreCheck",
    "as_items",
    "check_batch",
]

Hyperparameters = dict[str, list[float]]
"""Raw parameters of a model by name, flattened: what a session writes down."""


@dataclass(frozen=True)
class Performance:
    """Belief about the full-benchmark score ``R``.

    Attributes:
        mean: The reported estimate, in score units; a scalar, or of shape ``T``.
        variance: Variance of ``R`` given the evaluated items, squared score units;
            with ``dof`` the squared scale of Student's t, which is the variance but
            for the factor ``dof / (dof - 2)``.
        covariance: Joint covariance ``T x T`` of several targets' scores, whose
            diagonal is ``variance``; in general of the shape of ``mean`` twice.
        dof: Degrees of freedom > 0 of a Student-t belief, a scalar or of the shape of
            ``mean``, infinite where it is normal; ``None`` for a normal belief.
    """

    mean: Tensor
    variance: Tensor
    covariance: Tensor | None = None
    dof: Tensor | None = None

    @property
    def std(self) -> Tensor:
        """Standard deviation of ``R``; with ``dof`` the scale of Student's t."""
        return self.variance.sqrt()

    def width(self, level: float = 0.95) -> Tensor:
        """Full width of the central interval; the stopping rule's second quantity."""
        return 2.0 * half_width(self.variance, self.dof, level=level)

    def interval(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """The interval of that width around the reported estimate."""
        half = self.width(level) / 2.0
        return self.mean - half, self.mean + half

    def normal_covariance(self) -> Tensor | None:
        """Joint covariance of the normal belief that has the same 95 % intervals.

        What comparisons of targets work with: ``covariance`` itself without ``dof``,
        else scaled by the ratio of both quantiles of each target.
        """
        if self.covariance is None or self.dof is None:
            return self.covariance
        one = torch.ones_like(self.mean)
        ratio = half_width(one, self.dof) / half_width(one)
        return torch.outer(ratio, ratio) * self.covariance

    def of(self, target: int) -> Performance:
        """The belief about one of several targets."""
        dof = self.dof
        if dof is not None and dof.ndim:
            dof = dof[target]
        return Performance(self.mean[target], self.variance[target], dof=dof)

    def probability_above(self, threshold: Tensor | float) -> Tensor:
        """Probability that ``R`` exceeds a threshold, by the belief of the interval.

        Where the variance is 0 it is 1 or 0, and NaN at the threshold itself.
        """
        return probability_below((self.mean - threshold) / self.std, self.dof)


@runtime_checkable
class PerformanceModel(Protocol):
    """Belief about one target's benchmark score, updated by evaluated items.

    Anything with these three methods runs in sessions, simulations and tables.
    """

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items (indices) and their scores, in place."""

    def performance(self) -> Performance:
        """Estimate and variance of the benchmark score."""

    def acquisition(self) -> AcquisitionFunction | None:
        """What to maximise over item indices; ``None`` for random selection."""


@runtime_checkable
class MultiTargetModel(Protocol):
    """Joint belief about the benchmark scores of ``T`` targets.

    Each target has a coreset of its own, so what is evaluated is a pair of an item and
    a target, a row ``[item, target]``.

    Attributes:
        n_targets: ``T``.
        initial_items: Number of random items that all targets are evaluated on first.
    """

    n_targets: int
    initial_items: int

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in rows ``m x 2`` of item and target and their ``m`` scores."""

    def performance(self) -> Performance:
        """Estimates and variances of shape ``T``, with their joint covariance."""

    def acquisition(self) -> AcquisitionFunction | None:
        """What to maximise over ``[item, target]``; ``None`` for random selection.

        The model it reads has a ``lookahead``, see
        :class:`~gp_eval.acquisition.select.SupportsLookahead`.
        """


@runtime_checkable
class SupportsBegin(Protocol):
    """A model of several targets that is first trained on the initial items.

    Such a model counts scores, and cannot know of initial items that were skipped.
    """

    def begin(self) -> None:
        """There are no more initial items to wait for; again it changes nothing."""


@dataclass(frozen=True)
class LeaveOneOut:
    """What a model predicts for each evaluated score from all the others.

    Attributes:
        items: The evaluated items, shape ``n``, in their order; with several targets
            rows ``[item, target]``, ``n x 2``.
        mean: Predictive means, shape ``n``, in score units.
        variance: Predictive variances, shape ``n``, with the noise of the score.
    """

    items: Tensor
    mean: Tensor
    variance: Tensor


@runtime_checkable
class SupportsItemBelief(Protocol):
    """A model with a joint belief about the scores of all items.

    A report reads from it what no belief about the mean alone can say: scores of
    groups, and which items were a surprise.
    """

    def weighted_sums(self, weights: Tensor) -> Performance:
        """Belief about sums of scores with weights ``m x N``.

        Means and variances of shape ``m``, with several targets ``T x m``; the
        covariance ``m x m``, or ``T x m x T x m``, where the model knows it.
        """

    def leave_one_out(self) -> LeaveOneOut:
        """Each evaluated score as the others predict it, with the present model."""


@runtime_checkable
class SupportsRefit(Protocol):
    """A model that learns hyperparameters as items come in.

    A session writes every update down and hands them back on resume, so that a replay
    does not optimise again.
    """

    updates: dict[int, Hyperparameters]

    def replay_updates(self, updates: Mapping[int, Hyperparameters]) -> None:
        """Use these at the given ``n`` instead of optimising."""


@runtime_checkable
class AdaptsOffRange(Protocol):
    """A model that may say that its estimate holds for targets unlike the references.

    Then an alarm only warns, and the model goes on; see
    :class:`~gp_eval.alarm.RangeWatch`.

    Attributes:
        adapts_off_range: Whether it does.
    """

    adapts_off_range: bool


@runtime_checkable
class SupportsScoreCheck(Protocol):
    """A model that cannot take every finite score, such as one of 0/1 scores.

    A session asks before it writes a score down.
    """

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that ``condition`` would refuse."""


def check_batch(
    items: Tensor,
    scores: Tensor,
    *,
    n_items: int,
    seen: Collection[int],
    name: Callable[[int], str] = str,
) -> dict[int, float]:
    """Items and scores that may be taken in, before anything is changed.

    Args:
        items: ``m`` item indices.
        scores: ``m`` scores.
        n_items: ``N``.
        seen: Items evaluated before.
        name: How messages call an item.

    Raises:
        ValueError: For an item out of range, given twice or evaluated before, for a
            score that is not finite, or for unequal numbers of both.
    """
    indices = as_items(items, n_items)
    values = torch.as_tensor(scores, dtype=torch.float64).reshape(-1).tolist()
    if len(indices) != len(values):
        raise ValueError(
            f"items, scores: expected as many, got {len(indices)} and {len(values)}"
        )
    fresh: dict[int, float] = {}
    for item, value in zip(indices, values, strict=True):
        if item in seen or item in fresh:
            raise ValueError(f"item: {name(item)} is evaluated already")
        if not math.isfinite(value):
            raise ValueError(
                f"scores: expected finite ones, got {value} of {name(item)}"
            )
        fresh[item] = value
    return fresh


def as_items(items: Tensor | int, n_items: int, *, name: str = "items") -> list[int]:
    """Item indices as a checked list; ``name`` is what the error calls them."""
    indices = torch.as_tensor(items).reshape(-1).tolist()
    if wrong := [i for i in indices if not (0 <= i < n_items and i == int(i))]:
        raise ValueError(f"{name}: expected indices 0..{n_items - 1}, got {wrong[:5]}")
    return [int(i) for i in indices]
