from __future__ import annotations

import pytest
import torch

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.linalg import cholesky


def test_factor_of_a_good_matrix() -> None:
    root = torch.rand(6, 6, dtype=torch.float64)
    matrix = root @ root.T + torch.eye(6)
    factor = cholesky(matrix, name="matrix")
    torch.testing.assert_close(factor @ factor.T, matrix, rtol=1e-12, atol=1e-12)


def test_no_jitter_is_added_to_a_singular_matrix() -> None:
    matrix = torch.full((3, 3), 1.0, dtype=torch.float64)
    matrix[0, 0] -= 1e-9
    with pytest.raises(NotPositiveDefiniteError, match="thing: no Cholesky factor"):
        cholesky(matrix, name="thing")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_entries_that_are_not_finite(bad: float) -> None:
    matrix = torch.eye(3, dtype=torch.float64)
    matrix[1, 1] = bad
    with pytest.raises(NotPositiveDefiniteError, match="thing: has entries"):
        cholesky(matrix, name="thing")
