"""The k-DPP sampler against enumeration of all sets, and against DPPy."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from gp_eval.acquisition.batch import dpp, sample_k_dpp

SIZE = 4000


def kernel(n_items: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    x = 2 * torch.rand(n_items, 2, generator=generator, dtype=torch.float64)
    table = torch.exp(-(torch.cdist(x, x) ** 2)) + 0.05 * torch.eye(n_items).double()
    scale = torch.linspace(0.5, 1.5, n_items).double()
    return scale * table * scale.unsqueeze(-1)


def enumerated(table: Tensor, k: int) -> dict[tuple[int, ...], float]:
    sets = list(combinations(range(table.shape[0]), k))
    weights = [float(torch.det(table[list(s)][:, list(s)])) for s in sets]
    return {s: w / sum(weights) for s, w in zip(sets, weights, strict=True)}


def frequencies(samples: list[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    return {s: n / len(samples) for s, n in Counter(samples).items()}


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_sets_come_with_the_probability_of_their_determinant(k: int) -> None:
    table = kernel()
    rng = np.random.default_rng(k)
    drawn = sample_k_dpp(table, k, size=SIZE, rng=rng)
    seen = frequencies([tuple(sorted(s)) for s in drawn.tolist()])
    for chosen, probability in enumerated(table, k).items():
        error = (probability * (1 - probability) / SIZE) ** 0.5
        # Five standard errors over 56 sets: one seed in 30 000 would fail.
        assert abs(seen.get(chosen, 0.0) - probability) <= 5 * error + 1e-12, chosen


def test_marginals_are_those_of_enumeration_and_of_the_eigenvectors() -> None:
    table, k = kernel(), 3
    drawn = sample_k_dpp(table, k, size=SIZE, rng=np.random.default_rng(0))
    counted = torch.bincount(drawn.reshape(-1), minlength=6).double() / SIZE
    sets = enumerated(table, k)
    exact = [sum(p for s, p in sets.items() if i in s) for i in range(6)]
    exact = torch.tensor(exact, dtype=torch.float64)
    error = (exact * (1 - exact) / SIZE).sqrt()
    assert bool(((counted - exact).abs() < 5 * error).all())
    # Kulesza and Taskar: an eigenvector is in with probability l e_{k-1}(others) / e_k.
    values, vectors = np.linalg.eigh(table.numpy())
    total = np.exp(dpp._elementary_polynomials(values, k)[k, -1])
    share = [
        values[n]
        * np.exp(dpp._elementary_polynomials(np.delete(values, n), k - 1)[-1, -1])
        for n in range(6)
    ]
    closed = (vectors**2) @ (np.array(share) / total)
    torch.testing.assert_close(exact, torch.from_numpy(closed), rtol=1e-10, atol=0)


def test_dppy_draws_the_same_distribution() -> None:
    finite = pytest.importorskip("dppy.finite_dpps")
    table, k, size = kernel(), 3, 1500
    other, state = finite.FiniteDPP("likelihood", L=table.numpy()), None
    state = np.random.RandomState(1)
    theirs = frequencies(
        [
            tuple(sorted(other.sample_exact_k_dpp(size=k, random_state=state)))
            for _ in range(size)
        ]
    )
    rng = np.random.default_rng(1)
    drawn = sample_k_dpp(table, k, size=size, rng=rng).tolist()
    ours = frequencies([tuple(sorted(s)) for s in drawn])
    for chosen, p in enumerated(table, k).items():
        error = (2 * p * (1 - p) / size) ** 0.5
        assert abs(ours.get(chosen, 0) - theirs.get(chosen, 0)) < 5 * error + 1e-12


def test_polynomials_are_sums_of_products() -> None:
    values = np.array([0.3, 2.0, 0.7, 1.1])
    table = np.exp(dpp._elementary_polynomials(values, 3))
    for m in range(5):
        for j in range(4):
            expected = sum(np.prod(s) for s in combinations(values[:m], j))
            assert table[j, m] == pytest.approx(expected, rel=1e-12)


def test_the_scale_of_the_kernel_does_not_matter() -> None:
    draws = [
        sample_k_dpp(scale * kernel(), 4, size=20, rng=np.random.default_rng(3))
        for scale in (1.0, 2.0**-200, 2.0**200)
    ]
    assert torch.equal(draws[0], draws[1])
    assert torch.equal(draws[0], draws[2])


def test_a_kernel_of_too_low_rank_is_an_error() -> None:
    flat = torch.ones(5, 5, dtype=torch.float64)
    with pytest.raises(ValueError, match="expected a rank of at least 2, got 1"):
        sample_k_dpp(flat, 2, size=1, rng=np.random.default_rng(0))


def test_large_sets_of_a_kernel_with_small_eigenvalues_have_their_size() -> None:
    """``e_k`` itself would be below the smallest double."""
    points = torch.linspace(0.0, 1.0, 256, dtype=torch.float64)
    kernel = torch.exp(-((points[:, None] - points) ** 2)) + 1e-4 * torch.eye(256)
    sets = sample_k_dpp(kernel, 128, size=2, rng=np.random.default_rng(0))
    assert [len(set(batch)) for batch in sets.tolist()] == [128, 128]
