from __future__ import annotations

import unittest

import pytest
import torch
from gpytorch.test.base_mean_test_case import BaseMeanTestCase

from gp_eval.means import ReferenceMean


class TestConformance(unittest.TestCase, BaseMeanTestCase):
    """GPyTorch's own suite for means."""

    def create_mean(self) -> ReferenceMean:
        return ReferenceMean()


def test_is_the_mean_reference_score() -> None:
    phi = torch.rand(5, 3, dtype=torch.float64)
    for b in range(5):
        expected = sum(float(phi[b, k]) for k in range(3)) / 3
        assert float(ReferenceMean()(phi)[b]) == pytest.approx(expected, rel=1e-14)


def test_weights_are_appendix_b2() -> None:
    phi, w = torch.rand(5, 3, dtype=torch.float64), torch.tensor([0.2, 0.3, 0.5])
    w = w.double()
    for b in range(5):
        expected = sum(float(phi[b, k] * w[k]) for k in range(3))
        got = float(ReferenceMean(weights=w)(phi)[b])
        assert got == pytest.approx(expected, rel=1e-14)


def test_state_dict_round_trip() -> None:
    saved = ReferenceMean(weights=torch.tensor([0.2, 0.8]))
    loaded = ReferenceMean()
    loaded.load_state_dict(saved.state_dict())
    x = torch.rand(4, 2)
    assert torch.equal(loaded(x), saved(x))
