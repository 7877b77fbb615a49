from __future__ import annotations

import pytest
import torch

from gp_eval.data import References
from gp_eval.errors import DataError


def test_every_group_counts_the_same() -> None:
    scores = torch.rand(5, 3, dtype=torch.float64)
    references = References(
        scores, list("abcde"), ["x", "y", "z"], groups=["p", "q", "p", "p", "q"]
    )
    of_p, of_q = scores[[0, 2, 3]].mean(0), scores[[1, 4]].mean(0)
    torch.testing.assert_close(references.macro().performance, (of_p + of_q) / 2)
    assert references.macro().groups == references.groups


def test_groups_of_equal_size_give_the_plain_mean() -> None:
    references = References(
        torch.rand(4, 2), list("abcd"), ["x", "y"], groups=["p", "q", "p", "q"]
    )
    assert not references.macro().is_weighted


def test_without_groups_it_is_an_error() -> None:
    with pytest.raises(DataError, match="needs the group of every item"):
        References(torch.rand(2, 1), ["a", "b"], ["x"]).macro()
