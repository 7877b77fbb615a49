from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from populations import random_probabilities
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from gp_eval.data import References
from gp_eval.disco import (
    disagreement_of_probabilities,
    disagreement_of_scores,
    disagreement_order,
    soften,
)
from gp_eval.disco import selection_scores as module
from gp_eval.errors import DataError


def pds_by_loops(f: torch.Tensor, classes: list[int], item: int) -> float:
    return sum(max(float(f[m, item, c]) for m in range(len(f))) for c in classes)


def jsd_by_loops(f: torch.Tensor, classes: list[int], item: int) -> float:
    """Mean Kullback-Leibler divergence from the mixture, in nats."""
    total = 0.0
    for m in range(len(f)):
        for c in classes:
            p = float(f[m, item, c])
            mean = sum(float(f[j, item, c]) for j in range(len(f))) / len(f)
            total += p * math.log(p / mean) if p > 0 else 0.0
    return total / len(f)


def ragged(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Items of 2 to 5 classes, with rubbish where there is no class."""
    f = random_probabilities(6, 12, 5, seed=seed)
    mask = torch.arange(5) < torch.tensor([2, 3, 4, 5] * 3).unsqueeze(1)
    f = f * mask
    f = f / f.sum(-1, keepdim=True)
    return f.masked_fill(~mask, torch.nan), mask


@pytest.mark.parametrize("block", [1, 70, 2**17])
def test_both_scores_by_loops_over_models_items_and_classes(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    f, mask = ragged()
    found = disagreement_of_probabilities(f, mask=mask)
    for item in range(12):
        classes = torch.nonzero(mask[item]).flatten().tolist()
        pds, jsd = pds_by_loops(f, classes, item), jsd_by_loops(f, classes, item)
        assert float(found.pds[item]) == pytest.approx(pds, rel=1e-12)
        assert float(found.jsd[item]) == pytest.approx(jsd, rel=1e-10)
        per_class = found.of("pds-per-class")
        assert float(per_class[item]) == pytest.approx(pds / len(classes), rel=1e-12)
    assert found.n_classes.tolist() == [2, 3, 4, 5] * 3


def test_jsd_of_two_models_is_scipys_and_of_many_the_mutual_information() -> None:
    f = random_probabilities(2, 9, 4)
    theirs = jensenshannon(f[0].numpy(), f[1].numpy(), axis=1) ** 2
    ours = disagreement_of_probabilities(f).jsd.numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    f = random_probabilities(7, 9, 4)
    joint = (f / 7).permute(1, 0, 2)  # model index and prediction, item by item
    information = (
        entropy(joint.sum(2), axis=1)
        + entropy(joint.sum(1), axis=1)
        - entropy(joint.reshape(9, -1), axis=1)
    )
    ours = disagreement_of_probabilities(f).jsd.numpy()
    np.testing.assert_allclose(ours, information, rtol=1e-10)


@pytest.mark.parametrize(("n_models", "n_classes"), [(2, 5), (5, 2), (4, 4), (9, 31)])
@pytest.mark.parametrize("scale", [0.1, 2.0, 50.0])
def test_bounds_and_the_papers_sandwich_hold(
    n_models: int, n_classes: int, scale: float
) -> None:
    f = random_probabilities(n_models, 200, n_classes, scale=scale)
    found = disagreement_of_probabilities(f)
    slack = 1e-12
    assert bool((found.pds >= 1.0 - slack).all())
    assert bool((found.pds <= min(n_classes, n_models) + slack).all())
    assert bool((found.jsd >= 0.0).all())
    assert bool((found.jsd <= math.log(n_models) + slack).all())
    excess, bits = found.pds - 1.0, found.jsd / math.log(2.0)
    lower = 2.0 / (n_models**2 * math.log(2.0)) * excess**2
    upper = n_models / (n_models - 1) * math.log2(n_models) * excess
    assert bool((lower <= bits + slack).all())
    assert bool((bits <= upper + slack).all())


def test_the_sandwich_is_of_bits_for_in_nats_its_lower_end_is_too_high() -> None:
    f = torch.eye(2, dtype=torch.float64).unsqueeze(1)  # two sure, opposite models
    found = disagreement_of_probabilities(f)
    lower = 2.0 / (4 * math.log(2.0)) * (float(found.pds[0]) - 1.0) ** 2
    assert float(found.jsd[0]) < lower < float(found.jsd[0]) / math.log(2.0)


def test_the_bounds_are_reached() -> None:
    """Sure models that all say something else; and models that are all the same."""
    opposed = disagreement_of_probabilities(torch.eye(4).unsqueeze(1))
    assert float(opposed.pds[0]) == 4.0
    assert float(opposed.jsd[0]) == pytest.approx(math.log(4.0), rel=1e-15)
    alike = random_probabilities(1, 20, 4).expand(6, -1, -1)
    same = disagreement_of_probabilities(alike)
    torch.testing.assert_close(same.pds, torch.ones(20, dtype=torch.float64))
    assert float(same.jsd.abs().max()) < 1e-15


def test_order_of_classes_and_padding_change_nothing() -> None:
    f = random_probabilities(8, 30, 4)
    plain = disagreement_of_probabilities(f)
    turned = disagreement_of_probabilities(f[..., [2, 0, 3, 1]])
    padded = disagreement_of_probabilities(torch.cat([f, torch.zeros(8, 30, 27)], -1))
    for other in (turned, padded):
        torch.testing.assert_close(other.jsd, plain.jsd, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(other.pds, plain.pds, rtol=1e-14, atol=0.0)
        assert other.n_classes.tolist() == [4] * 30
        for score in ("jsd", "pds", "pds-per-class"):
            expected = disagreement_order(plain.of(score)).tolist()
            assert disagreement_order(other.of(score)).tolist() == expected


def test_a_model_that_comes_twice_counts_twice_in_jsd_and_once_in_pds() -> None:
    f = random_probabilities(3, 10, 4)
    twice = disagreement_of_probabilities(f[[0, 1, 2, 2]])
    weights = [0.25, 0.25, 0.5]
    for item in range(10):
        mixture = sum(w * f[m, item] for m, w in enumerate(weights))
        expected = entropy(mixture) - sum(
            w * entropy(f[m, item]) for m, w in enumerate(weights)
        )
        assert float(twice.jsd[item]) == pytest.approx(float(expected), rel=1e-10)
    assert twice.pds.tolist() == disagreement_of_probabilities(f).pds.tolist()
    assert bool((twice.jsd != disagreement_of_probabilities(f).jsd).any())


def test_the_same_input_gives_the_same_bits() -> None:
    f = random_probabilities(50, 3000, 4)
    first, second = disagreement_of_probabilities(f), disagreement_of_probabilities(f)
    assert first.jsd.tolist() == second.jsd.tolist()
    assert first.pds.tolist() == second.pds.tolist()


def test_guiding_models_are_all_that_counts() -> None:
    f = random_probabilities(10, 40, 3)
    chosen = torch.tensor([1, 4, 7])
    guided = disagreement_of_probabilities(f, models=chosen)
    alone = disagreement_of_probabilities(f[chosen])
    assert guided.jsd.tolist() == alone.jsd.tolist()
    assert guided.pds.tolist() == alone.pds.tolist()
    with pytest.raises(ValueError, match="expected at least 2, got 1"):
        disagreement_of_probabilities(f, models=torch.tensor([3]))


def test_memory_maps_and_half_precision_are_read_as_they_are(tmp_path: Path) -> None:
    f = random_probabilities(6, 25, 31)
    np.save(tmp_path / "f.npy", f.numpy())
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    exact = disagreement_of_probabilities(f)
    for models in (None, torch.tensor([0, 5])):
        mapped_scores = disagreement_of_probabilities(mapped, models=models)
        expected = disagreement_of_probabilities(f, models=models)
        assert mapped_scores.jsd.tolist() == expected.jsd.tolist()
    half = disagreement_of_probabilities(f.half())
    # Half precision has 11 bits.
    torch.testing.assert_close(half.jsd, exact.jsd, rtol=2e-3, atol=1e-4)
    torch.testing.assert_close(half.pds, exact.pds, rtol=1e-3, atol=0.0)


def test_temperatures_act_before_the_scores() -> None:
    f, mask = ragged()
    temperatures = torch.tensor([0.5, 1.0, 2.0, 0.7, 1.5, 3.0], dtype=torch.float64)
    found = disagreement_of_probabilities(f, mask=mask, temperatures=temperatures)
    softened = soften(f.nan_to_num(0.0), temperatures, mask=mask)
    expected = disagreement_of_probabilities(softened)
    torch.testing.assert_close(found.jsd, expected.jsd, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(found.pds, expected.pds, rtol=1e-12, atol=0.0)


def test_scores_alone_are_two_classes() -> None:
    scores = torch.rand(30, 7, dtype=torch.float64)
    found = disagreement_of_scores(scores)
    spread = scores.amax(1) - scores.amin(1)
    torch.testing.assert_close(found.of("pds"), 1.0 + spread, rtol=1e-14, atol=0.0)
    entropies = torch.special.entr(scores) + torch.special.entr(1.0 - scores)
    mean = scores.mean(1)
    mixed = torch.special.entr(mean) + torch.special.entr(1.0 - mean)
    torch.testing.assert_close(
        found.jsd, mixed - entropies.mean(1), rtol=1e-10, atol=1e-15
    )
    two = torch.stack([1.0 - scores.T, scores.T], -1)
    assert found.jsd.tolist() == disagreement_of_probabilities(two).jsd.tolist()
    part = disagreement_of_scores(scores, models=torch.tensor([2, 5]))
    assert part.jsd.tolist() == disagreement_of_scores(scores[:, [2, 5]]).jsd.tolist()


def test_jsd_of_scores_0_and_1_is_the_entropy_of_the_pass_rate() -> None:
    scores = (torch.rand(40, 9) < 0.4).double()
    found = disagreement_of_scores(scores)
    rate = scores.mean(1).numpy()
    expected = entropy(np.stack([rate, 1.0 - rate]), axis=0)
    np.testing.assert_allclose(found.jsd.numpy(), expected, rtol=1e-12, atol=1e-15)
    for score in ("pds", "pds-per-class"):
        with pytest.raises(ValueError, match="takes only the values 1 and 2"):
            found.of(score)  # type: ignore[arg-type]


def test_pds_of_scores_0_and_1_is_refused_but_not_of_one_fraction_among_them() -> None:
    scores = (torch.rand(40, 9) < 0.4).double()
    scores[39, 0] = 0.5
    assert disagreement_of_scores(scores).of("pds").shape == (40,)


def test_nearly_all_items_of_ifeval_tie_in_pds(shared_data: Path) -> None:
    references = References.read(
        shared_data / "benchpred_ifeval.npz",
        missing="drop-models",
        duplicate_models="number",
    )
    found = disagreement_of_scores(references.scores)
    with pytest.raises(ValueError, match="534 of 541 items tie at 2.*use 'jsd'"):
        found.of("pds")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (torch.zeros(3, 4), "expected shape K x N x C"),
        (-random_probabilities(3, 4, 2), r"sum 1 .*items \[0, 1, 2, 3\]"),
        (random_probabilities(3, 4, 2).log(), "probabilities_from_log_likelihoods"),
        (torch.full((3, 4, 2), torch.nan), r"items \[0, 1, 2, 3\]"),
    ],
)
def test_what_is_no_probability_is_refused(f: torch.Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        disagreement_of_probabilities(f)


def test_errors_name_the_items_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 20)
    f = random_probabilities(3, 10, 2)
    f[1, 7] = 0.4
    with pytest.raises(DataError, match=r"on items \[7\]"):
        disagreement_of_probabilities(f)
    with pytest.raises(DataError, match=r"mask: expected shape \(10, 2\), got \(2,\)"):
        disagreement_of_probabilities(f, mask=torch.ones(2))
    with pytest.raises(DataError, match=r"\[0, 1\], not so on items \[2\] \(1 of 4\)"):
        disagreement_of_scores(torch.tensor([[0.0, 1.0]] * 2 + [[0.5, 1.5], [1, 0]]))
    with pytest.raises(ValueError, match="expected one of .*'jsd'.*got 'kl'"):
        disagreement_of_scores(torch.rand(3, 4)).of("kl")  # type: ignore[arg-type]
