"""Which model is better: differences of benchmark scores and a ranking with ties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from gp_eval.data.validation import as_ids, some
from gp_eval.result import Result

__all__ = [
    "Comparison",
    "Difference",
    "Ranked",
    "compare",
    "compare_independent",
    "independent_variance",
]

_ROUNDING = 1e-12
"""Share of its terms below which a difference is rounding."""
_ASYMMETRY = 1e-10
"""Share of the variances by which a covariance may differ from its transpose."""


@dataclass(frozen=True)
class Difference:
    """Belief about ``R_a - R_b``, of the full-benchmark scores of two models.

    Attributes:
        a: The model of the higher estimate, in a :class:`Comparison`.
        b: The other model.
        difference: Estimate of ``R_a - R_b``, in score units.
        low: Lower end of its interval.
        high: Upper end of its interval.
        probability: ``P(R_a > R_b)``. Where nothing is uncertain any more it is 1 or 0,
            and 0.5 for equal scores.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    probability: float

    @property
    def tied(self) -> bool:
        """Whether the interval includes 0."""
        return self.low <= 0.0 <= self.high

    def reversed(self) -> Difference:
        """The same belief as ``R_b - R_a``."""
        return Difference(
            a=self.b,
            b=self.a,
            difference=0.0 - self.difference,
            low=0.0 - self.high,
            high=0.0 - self.low,
            probability=1.0 - self.probability,
        )


@dataclass(frozen=True)
class Ranked:
    """One model in the ranking.

    Attributes:
        name: The model.
        mean: Estimate of its full-benchmark score, in score units.
        low: Lower end of the interval of the score.
        high: Upper end of the interval of the score.
        best: Best possible rank: 1 + number of models that are better, with the
            interval of the difference excluding 0.
        worst: Worst possible rank: ``T`` - number of models that are worse likewise.
        tied_with: Models from which the interval of the difference includes 0, in the
            order of the ranking.
    """

    name: str
    mean: float
    low: float
    high: float
    best: int
    worst: int
    tied_with: tuple[str, ...]

    @property
    def ranks(self) -> str:
        """The range of possible ranks in words, such as ``"2"`` or ``"1-3"``."""
        return (
            f"{self.best}" if self.best == self.worst else f"{self.best}-{self.worst}"
        )


@dataclass(frozen=True)
class Comparison:
    """A ranking of ``T`` models and what is known about each pair.

    Attributes:
        level: Probability of each interval, of the pairs as of the scores.
        ranking: The models by estimate, the highest first.
        pairs: All ``T (T - 1) / 2`` differences, ``a`` before ``b`` in the ranking.
    """

    level: float
    ranking: tuple[Ranked, ...]
    pairs: tuple[Difference, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The models in the order of the ranking."""
        return tuple(ranked.name for ranked in self.ranking)

    def pair(self, a: str, b: str) -> Difference:
        """The belief about ``R_a - R_b``.

        Raises:
            ValueError: For a name that is not compared, or the same name twice.
        """
        for pair in self.pairs:
            if (pair.a, pair.b) == (a, b):
                return pair
            if (pair.a, pair.b) == (b, a):
                return pair.reversed()
        raise ValueError(f"a, b: expected two of {self.names}, got {a!r} and {b!r}")

    def probabilities(self) -> Tensor:
        """``P(R_row > R_column)``, ``T x T`` in the order of the ranking.

        The diagonal is 0.5.
        """
        position = {name: i for i, name in enumerate(self.names)}
        matrix = torch.full((len(position),) * 2, 0.5, dtype=torch.float64)
        for pair in self.pairs:
            a, b = position[pair.a], position[pair.b]
            matrix[a, b], matrix[b, a] = pair.probability, 1.0 - pair.probability
        return matrix


def compare(
    names: Sequence[str], mean: Tensor, covariance: Tensor, *, level: float = 0.95
) -> Comparison:
    """Compare models under a joint Gaussian belief about their benchmark scores.

    The difference ``R_a - R_b`` is Gaussian of mean ``m_a - m_b`` and variance
    ``S_aa + S_bb - 2 S_ab``. Each interval holds with ``level`` for itself: there is no
    correction for looking at many pairs. Higher scores count as better.

    Args:
        names: The ``T`` models.
        mean: Estimates of shape ``T``, in score units.
        covariance: Joint covariance ``T x T``, squared score units; diagonal for
            independent beliefs, see :func:`compare_independent`.
        level: Probability of the intervals.

    Raises:
        DataError: For repeated names.
        ValueError: For shapes that do not fit, values that are not finite, a matrix
            that is no covariance, or a level outside (0, 1).
    """
    names = as_ids("names", names)
    m, covariance = _checked(names, mean, covariance)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: expected 0 < level < 1, got {level}")
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    order = sorted(range(len(names)), key=lambda i: -m[i])  # equals stay in order
    s = covariance.tolist()
    pairs = tuple(
        _difference((names[a], names[b]), (m[a], m[b]), (s[a][a], s[b][b], s[a][b]), z)
        for i, a in enumerate(order)
        for b in order[i + 1 :]
    )
    half = [z * math.sqrt(s[i][i]) for i in range(len(names))]
    ranking = tuple(_ranked(names[i], m[i], half[i], pairs) for i in order)
    return Comparison(level=level, ranking=ranking, pairs=pairs)


def compare_independent(
    results: Sequence[Result], *, level: float = 0.95
) -> Comparison:
    """Compare single-target runs, taken as independent beliefs.

    The errors of two models evaluated with the same references are mostly positively
    correlated: what makes the benchmark look easier for one does for the other. Then
    independence overstates the variance of the difference, and the comparison is
    conservative: intervals too wide, probabilities too close to one half. If errors are
    negatively correlated it is the other way round. A joint belief (:func:`compare`)
    needs the models evaluated in one run of several targets.

    Args:
        results: Where each run stands; all on the same items and references, which the
            caller checks.
        level: Probability of the intervals.

    Raises:
        DataError: For two results of one target.
        ValueError: For results of benchmarks of different ``N``.
    """
    sizes = sorted({result.N for result in results})
    if len(sizes) > 1:
        raise ValueError(f"results: expected the same items, got N = {sizes}")
    variances = [independent_variance(result) for result in results]
    return compare(
        [result.target for result in results],
        torch.tensor([result.mean for result in results], dtype=torch.float64),
        torch.tensor(variances, dtype=torch.float64).diag(),
        level=level,
    )


def independent_variance(result: Result) -> float:
    """Variance of one target's benchmark score, from the width of its 95 % interval."""
    std = result.width / 2.0 / NormalDist().inv_cdf(0.975)
    return std * std


def _checked(
    names: Sequence[str], mean: Tensor, covariance: Tensor
) -> tuple[list[float], Tensor]:
    """The belief as a list and a symmetric matrix of proper variances."""
    n_models = len(names)
    if not n_models:
        raise ValueError("names: expected at least one model, got none")
    m = torch.as_tensor(mean, dtype=torch.float64).detach().cpu()
    s = torch.as_tensor(covariance, dtype=torch.float64).detach().cpu()
    for name, tensor, shape in (
        ("mean", m, (n_models,)),
        ("covariance", s, (n_models, n_models)),
    ):
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"{name}: expected shape {shape} for {n_models} names, got "
                f"{tuple(tensor.shape)}"
            )
        if not bool(tensor.isfinite().all()):
            raise ValueError(f"{name}: expected finite values, got {tensor.tolist()}")
    variances = s.diagonal()
    if negative := [names[i] for i in torch.nonzero(variances < 0).flatten().tolist()]:
        raise ValueError(f"covariance: negative variance of {some(negative)}")
    scale = variances[:, None] + variances
    if bool(((s - s.T).abs() > _ASYMMETRY * scale).any()):
        gap = float((s - s.T).abs().max())
        raise ValueError(f"covariance: expected a symmetric matrix, off by {gap:.3g}")
    return m.tolist(), (s + s.T) / 2.0


def _difference(
    names: tuple[str, str],
    means: tuple[float, float],
    moments: tuple[float, float, float],
    z: float,
) -> Difference:
    """The belief about one difference, from both variances and the covariance."""
    (a, b), (mean_a, mean_b), (var_a, var_b, covariance) = names, means, moments
    scale = var_a + var_b
    variance = scale - 2.0 * covariance  # cancels where the two are nearly one
    if variance < -_ROUNDING * scale:
        raise ValueError(
            f"covariance: the variance of {a!r} - {b!r} would be {variance:.3g}, from "
            f"variances {var_a:.3g}, {var_b:.3g} and covariance {covariance:.3g}"
        )
    difference = mean_a - mean_b
    if variance > _ROUNDING * scale:
        std = math.sqrt(variance)
        probability = NormalDist().cdf(difference / std)
    else:
        std = 0.0
        if abs(difference) <= _ROUNDING * max(abs(mean_a), abs(mean_b)):
            difference = 0.0
        probability = 0.5 if difference == 0.0 else float(difference > 0.0)
    half = z * std
    return Difference(
        a, b, difference, difference - half, difference + half, probability
    )


def _ranked(name: str, mean: float, half: float, pairs: Sequence[Difference]) -> Ranked:
    """One model's place, from its own pairs; ``a`` has the higher estimate in each."""
    above = [pair for pair in pairs if pair.b == name]
    below = [pair for pair in pairs if pair.a == name]
    tied_above = [pair.a for pair in above if pair.tied]
    tied_below = [pair.b for pair in below if pair.tied]
    return Ranked(
        name=name,
        mean=mean,
        low=mean - half,
        high=mean + half,
        best=1 + len(above) - len(tied_above),
        worst=1 + len(above) + len(tied_below),
        tied_with=(*tied_above, *tied_below),
    )
