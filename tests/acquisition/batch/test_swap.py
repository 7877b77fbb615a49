from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gp_eval.acquisition.batch import replacement_values, swapped_inverse


def covariance(size: int, seed: int = 0) -> Tensor:
    """As badly conditioned as the model's: a smooth kernel and noise of 1e-4."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(size, 2, generator=generator, dtype=torch.float64)
    return torch.exp(-(torch.cdist(x, x) ** 2)) + 1e-4 * torch.eye(size).double()


def swap(
    matrix: Tensor, batch: list[int], m: int, new: int
) -> tuple[Tensor, Tensor, list[int]]:
    """The matrix before, the new column, and the batch after the swap."""
    after = [*batch[:m], new, *batch[m + 1 :]]
    return matrix[batch][:, batch], matrix[after, new], after


def by_woodbury(inverse: Tensor, before: Tensor, column: Tensor, m: int) -> Tensor:
    """The paper's formula, letter by letter."""
    e = torch.eye(len(column)).double()[m]
    d = column - before[:, m]
    u = torch.stack([e, d - d[m] / 2 * e], 1)
    v = torch.stack([d - d[m] / 2 * e, e], 1)
    core = torch.eye(2).double() + v.T @ inverse @ u
    return inverse - inverse @ u @ torch.linalg.inv(core) @ v.T @ inverse


@pytest.mark.parametrize("q", [1, 3, 5, 8])
def test_updated_inverse_is_a_fresh_one_after_1000_swaps(q: int) -> None:
    matrix, batch = covariance(60), list(range(0, 5 * q, 5))
    inverse = torch.linalg.inv(matrix[batch][:, batch]).unsqueeze(0)
    generator, worst = torch.Generator().manual_seed(1), 0.0
    for step in range(1000):
        free = [i for i in range(60) if i not in batch]
        new = free[int(torch.randint(len(free), (), generator=generator))]
        before, column, batch = swap(matrix, batch, step % q, new)
        inverse = swapped_inverse(
            inverse, before.unsqueeze(0), column.unsqueeze(0), step % q
        )
        fresh = torch.linalg.inv(matrix[batch][:, batch])
        worst = max(worst, float((inverse[0] - fresh).norm() / fresh.norm()))
    assert worst < 1e-10, worst


@pytest.mark.parametrize("m", [0, 1, 2])
def test_one_update_is_the_paper_s_woodbury_formula(m: int) -> None:
    matrix, batch = covariance(10), [4, 1, 7]
    before, column, after = swap(matrix, batch, m, 9)
    inverse = torch.linalg.inv(before)
    updated = swapped_inverse(
        inverse.unsqueeze(0), before.unsqueeze(0), column.unsqueeze(0), m
    )[0]
    paper = by_woodbury(inverse, before, column, m)
    # The paper's form loses what the conditioning of 1e4 takes.
    torch.testing.assert_close(updated, paper, rtol=1e-8, atol=1e-8)
    fresh = torch.linalg.inv(matrix[after][:, after])
    torch.testing.assert_close(updated, fresh, rtol=1e-10, atol=1e-10)


def test_several_batches_at_a_time_are_those_by_themselves() -> None:
    matrix, batches = covariance(12), [[0, 3, 5], [7, 8, 2]]
    swaps = [swap(matrix, batch, 2, 11) for batch in batches]
    before, column = (torch.stack([s[k] for s in swaps]) for k in (0, 1))
    inverse = torch.linalg.inv(before)
    both = swapped_inverse(inverse, before, column, 2)
    for k in (slice(0, 1), slice(1, 2)):
        one = swapped_inverse(inverse[k], before[k], column[k], 2)
        torch.testing.assert_close(both[k], one, rtol=1e-12, atol=1e-12)


def test_values_of_all_replacements_are_those_of_fresh_solves() -> None:
    matrix = covariance(15)
    c = matrix.mean(1)
    batches = torch.tensor([[2, 9, 4, 13], [0, 1, 2, 3]])
    inverse = torch.stack([torch.linalg.inv(matrix[b][:, b]) for b in batches])
    for m in range(4):
        values = replacement_values(
            inverse, matrix[batches], batches, c, matrix.diagonal(), m
        )
        for row, batch in zip(values, batches.tolist(), strict=True):
            others = [*batch[:m], *batch[m + 1 :]]
            for item in range(15):
                if item in others:
                    assert row[item] == -torch.inf
                    continue
                new = [*others, item]
                value = c[new] @ torch.linalg.solve(matrix[new][:, new], c[new])
                torch.testing.assert_close(row[item], value, rtol=1e-9, atol=0)


def test_a_batch_of_one_is_replaced_as_well() -> None:
    matrix = covariance(6)
    c = matrix.mean(1)
    values = replacement_values(
        1 / matrix[2:3, 2:3].unsqueeze(0),
        matrix[2].reshape(1, 1, 6),
        torch.tensor([[2]]),
        c,
        matrix.diagonal(),
        0,
    )
    torch.testing.assert_close(values[0], c.square() / matrix.diagonal())
