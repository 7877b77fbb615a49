from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from populations import random_probabilities
from scipy.special import softmax

from gp_eval.disco import (
    fit_temperatures,
    probabilities_from_log_likelihoods,
    soften,
)
from gp_eval.disco.probabilities import _TEMPERATURES
from gp_eval.errors import DataError


def test_log_likelihoods_become_probabilities_by_scipys_softmax() -> None:
    values = -50.0 * np.random.default_rng(0).random((4, 6, 5))
    values[:, 2, 3:] = -np.inf
    found = probabilities_from_log_likelihoods(values)
    np.testing.assert_allclose(found.numpy(), softmax(values, axis=-1), rtol=1e-13)
    assert found[:, 2, 3:].abs().max() == 0.0
    assert probabilities_from_log_likelihoods(np.float32(values)).dtype == torch.float32


def test_masked_classes_are_not_read() -> None:
    values = torch.randn(3, 4, 5, dtype=torch.float64)
    mask = torch.arange(5).expand(4, -1) < 3
    values[..., 3:] = torch.nan
    found = probabilities_from_log_likelihoods(values, mask=mask)
    torch.testing.assert_close(found[..., :3], torch.softmax(values[..., :3], -1))
    assert found[..., 3:].abs().max() == 0.0


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_log_likelihoods_that_are_none_are_refused(bad: float) -> None:
    values = torch.zeros(3, 4, 5)
    values[1, 2, 0] = bad
    with pytest.raises(DataError, match="not so in 1 rows"):
        probabilities_from_log_likelihoods(values)
    with pytest.raises(DataError, match="not so in 4 rows"):
        probabilities_from_log_likelihoods(torch.full((4, 2), -torch.inf))
    with pytest.raises(DataError, match="expected floats, got torch.int64"):
        probabilities_from_log_likelihoods(torch.zeros(2, 2).long())


def test_softened_probabilities_by_the_formula() -> None:
    f = random_probabilities(3, 5, 4)
    temperatures = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    found = soften(f, temperatures)
    for m, temperature in enumerate(temperatures.tolist()):
        for i in range(5):
            powers = [max(float(p), 1e-4) ** (1.0 / temperature) for p in f[m, i]]
            expected = torch.tensor(powers, dtype=torch.float64) / sum(powers)
            torch.testing.assert_close(found[m, i], expected, rtol=1e-12, atol=0.0)


def test_padding_stays_padding_and_a_sure_model_does_not_make_any() -> None:
    f = torch.tensor([[[1.0, 0.0, 0.0]], [[0.5, 0.5, 0.0]]], dtype=torch.float64)
    softened = soften(f, torch.ones(2, dtype=torch.float64))
    assert softened[0, 0].tolist() == pytest.approx([1 / 1.0001, 1e-4 / 1.0001, 0.0])
    alone = soften(f[:1], torch.ones(1).double(), mask=torch.tensor([[1, 1, 0]]).bool())
    assert alone[0].tolist() == softened[0].tolist()


def test_a_temperature_that_was_put_on_is_found_again() -> None:
    """Labels drawn from the probabilities: their own temperature is 1."""
    f = random_probabilities(4, 20_000, 5, scale=1.0)
    generator = torch.Generator().manual_seed(0)
    labels = torch.multinomial(f[0], 1, generator=generator).squeeze(1)
    put_on = _TEMPERATURES[[6, 10, 12, 15]]
    sharp = soften(f[:1].expand(4, -1, -1), 1.0 / put_on)
    # The grid's neighbours are a quarter away in the logarithm.
    found = fit_temperatures(sharp, labels).log()
    assert float((found - put_on.log()).abs().max()) < 0.26


def test_temperatures_by_loops_over_the_grid() -> None:
    f = random_probabilities(3, 8, 4)
    labels = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
    found = fit_temperatures(f, labels)
    for m in range(3):

        def loss(temperature: float, m: int = m) -> float:
            softened = soften(f, torch.full((3,), temperature, dtype=torch.float64))
            return -sum(math.log(softened[m, i, labels[i]]) for i in range(8))

        assert float(found[m]) == min(_TEMPERATURES.tolist(), key=loss)


def test_labels_must_be_classes_of_their_items() -> None:
    f = torch.cat([random_probabilities(3, 4, 2), torch.zeros(3, 4, 1)], -1)
    with pytest.raises(DataError, match=r"expected shape \(4,\), got \(3,\)"):
        fit_temperatures(f, torch.zeros(3))
    with pytest.raises(DataError, match=r"not among the classes of the items \[1, 3\]"):
        fit_temperatures(f, torch.tensor([0, 2, 1, -1]))
