from __future__ import annotations

import pytest
import torch

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.linalg.likelihood_terms import (
    _by_lapack,
    _by_torch,
    likelihood_terms,
)


def problem(n: int = 7) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    root = torch.rand(n, n, generator=generator, dtype=torch.float64)
    gram = root @ root.T + 0.1 * torch.eye(n)
    direction = root + root.T
    return gram, torch.rand(n, generator=generator, dtype=torch.float64), direction


@pytest.mark.parametrize("terms", [_by_lapack, _by_torch, likelihood_terms])
def test_value_and_trace_by_inverse_and_determinant(terms) -> None:
    gram, residual, direction = problem()
    inverse = torch.linalg.inv(gram)
    expected = 0.5 * residual @ inverse @ residual + 0.5 * torch.logdet(gram)
    a = inverse @ residual
    trace = torch.trace((inverse - torch.outer(a, a)) @ direction)
    value, weights = terms(gram.clone(), residual)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        (weights * direction).sum(), trace, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("terms", [_by_lapack, _by_torch])
def test_matrix_without_a_factor_is_an_error_with_its_eigenvalues(terms) -> None:
    gram, residual, _ = problem(4)
    gram[2, 2] = -1.0
    lowest = float(torch.linalg.eigvalsh(gram)[0])
    with pytest.raises(NotPositiveDefiniteError, match=f"from {lowest:.3g} to"):
        terms(gram, residual)


@pytest.mark.parametrize("terms", [_by_lapack, _by_torch])
@pytest.mark.parametrize("place", [(0, 0), (3, 1), (6, 6)])
def test_nan_is_an_error_and_not_a_value(terms, place: tuple[int, int]) -> None:
    """LAPACK's own factorisation reports success."""
    gram, residual, _ = problem()
    gram[place] = gram[place[::-1]] = torch.nan
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        terms(gram, residual)
