r"""Exact samples of a :math:`k`-determinantal point process."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["sample_k_dpp"]


def sample_k_dpp(
    kernel: Tensor, k: int, *, size: int, rng: np.random.Generator
) -> Tensor:
    r"""Sets of ``k`` items with probability proportional to :math:`\det L_{AA}`.

    Kulesza and Taskar (2011): eigenvectors are drawn by elementary symmetric
    polynomials of the eigenvalues, then items of the projection process that they
    span, one after the other. One eigendecomposition serves all samples.

    It is our own because a batch must not depend on what else is installed; the tests
    compare it with enumeration and with DPPy.

    Args:
        kernel: Positive semi-definite ``L``, shape ``M x M``.
        k: Size of the sets.
        size: Number of sets.
        rng: Where the randomness comes from.

    Returns:
        Integers ``size x k``, in the order of drawing.

    Raises:
        ValueError: If the rank of the kernel is below ``k``.
    """
    values, vectors = np.linalg.eigh(kernel.numpy())
    values = np.clip(values / values.max(), 0.0, None)
    values[values < values.shape[0] * np.finfo(values.dtype).eps] = 0.0
    if (rank := int((values > 0.0).sum())) < k:
        raise ValueError(f"kernel: expected a rank of at least {k}, got {rank}")
    polynomials = _elementary_polynomials(values, k)
    sets = [
        _project(vectors[:, _spanning(values, polynomials, k, rng)], rng)
        for _ in range(size)
    ]
    return torch.tensor(sets, dtype=torch.long).reshape(size, k)


def _elementary_polynomials(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Log of ``e_j`` of the first ``m`` values at ``[j, m]``, ``(k + 1) x (M + 1)``.

    Logarithms, as products of a hundred small values are 0 in double precision.
    """
    table = np.full((k + 1, values.shape[0] + 1), -np.inf)
    table[0] = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    for m, log in enumerate(logs):
        table[1:, m + 1] = np.logaddexp(table[1:, m], log + table[:-1, m])
    return table


def _spanning(
    values: NDArray[np.float64],
    polynomials: NDArray[np.float64],
    k: int,
    rng: np.random.Generator,
) -> list[int]:
    """``k`` eigenvectors, a set of them proportionally to the product of values."""
    chosen: list[int] = []
    for m in range(values.shape[0], 0, -1):
        left = k - len(chosen)
        if not left:
            break
        if not values[m - 1]:
            continue
        log = np.log(values[m - 1]) + polynomials[left - 1, m - 1]
        share = np.exp(log - polynomials[left, m])
        if rng.random() < share:
            chosen.append(m - 1)
    return chosen


def _project(vectors: NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """A sample of the projection process that orthonormal ``M x k`` columns span."""
    chosen: list[int] = []
    for _ in range(vectors.shape[1]):
        weights = np.square(vectors).sum(1)
        weights[chosen] = 0.0  # but for rounding they are
        item = int(rng.choice(weights.shape[0], p=weights / weights.sum()))
        chosen.append(item)
        row = vectors[item] / np.linalg.norm(vectors[item])
        vectors = vectors - np.outer(vectors @ row, row)
    return chosen
