"""What a simulated run leaves behind, and what simulates many of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from gp_eval.data import References
from gp_eval.intervals import half_width

__all__ = ["Curves", "Simulator"]


@dataclass(frozen=True)
class Curves:
    """Estimates and variances of ``R`` runs after ``n = 1..n_max`` items each.

    A trajectory does not depend on any stopping threshold, so rules are applied to
    stored curves. Before a joint model was trained on the initial items, its estimates
    mean nothing, and both are NaN.

    Attributes:
        mean: Reported estimates, ``R x n_max``, in score units.
        variance: Variances of the benchmark score, ``R x n_max``; squared scales where
            the belief is Student's t.
        dof: Degrees of freedom of the beliefs, ``R x n_max``, infinite where they are
            normal; ``None`` if all are.

    Raises:
        ValueError: For shapes that differ.
    """

    mean: Tensor
    variance: Tensor
    dof: Tensor | None = None

    def __post_init__(self) -> None:
        """Check the shapes, which a file would mix up."""
        shapes = {k: tuple(v.shape) for k, v in vars(self).items() if v is not None}
        if len(set(shapes.values())) > 1:
            raise ValueError(f"curves: expected one shape R x n_max, got {shapes}")

    def half_width(self, level: float = 0.95) -> Tensor:
        """Half widths of the central intervals, ``R x n_max``, in score units."""
        # Rounding may leave a sum of variances below 0 at n = N.
        return half_width(self.variance.clamp_min(0.0), self.dof, level=level)


class Simulator(Protocol):
    """Runs one model on ``R`` targets in lock-step, as batched linear algebra."""

    def __call__(
        self, references: References, scores: Tensor, order: Tensor, *, n_max: int
    ) -> Curves:
        """Curves of all targets.

        Args:
            references: The references of all ``R`` runs.
            scores: Scores of the targets on all items, ``R x N``.
            order: A permutation of the items, shape ``N``; models that select at
                random evaluate in this order, the same for all targets.
            n_max: Number of items to evaluate, at most ``N``.
        """
