from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from oracles import Problem

from gp_eval.models.baselines.latent_scores import LatentScoreModel, ScoreFeatureTable

CORESET = [2, 7, 4]


def conditioned(problem: Problem) -> LatentScoreModel:
    model = LatentScoreModel(problem.references.scores, problem.weights, noise=0.3)
    for item in CORESET:
        model.append(item, float(problem.scores[item]))
    return model


def dense(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of all latent scores."""
    scores = problem.references.scores.numpy()
    prior, covariance = scores.mean(1), np.cov(scores)
    gram = covariance[np.ix_(CORESET, CORESET)] + 0.3 * np.eye(len(CORESET))
    gain = covariance[:, CORESET] @ np.linalg.inv(gram)
    residual = problem.scores.numpy()[CORESET] - prior[CORESET]
    return prior + gain @ residual, covariance - gain @ covariance[CORESET]


def test_table_is_the_sample_covariance(problem: Problem) -> None:
    table = ScoreFeatureTable(problem.references.scores)
    expected = torch.from_numpy(np.cov(problem.references.scores.numpy()))
    rows, vector = torch.tensor([3, 0]), problem.scores
    close = {"rtol": 1e-12, "atol": 1e-15}
    torch.testing.assert_close(table.row(4), expected[4], **close)
    torch.testing.assert_close(table.diagonal(), expected.diagonal(), **close)
    torch.testing.assert_close(table.matvec(vector), expected @ vector, **close)
    torch.testing.assert_close(
        table.block(rows, rows), expected[rows][:, rows], **close
    )
    torch.testing.assert_close(
        table.block(rows, slice(1, 5)), expected[rows][:, 1:5], **close
    )


def test_posterior_is_the_dense_one(problem: Problem) -> None:
    model = conditioned(problem)
    mean, covariance = dense(problem)
    items = torch.tensor([1, 2, 9, 11])
    X = items.double().unsqueeze(-1)
    posterior = model.posterior(X)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), mean[items], rtol=1e-10)
    expected = covariance[np.ix_(items, items)]
    dense_covariance = posterior.distribution.covariance_matrix
    np.testing.assert_allclose(dense_covariance, expected, rtol=1e-10, atol=1e-14)
    noisy = expected + 0.3 * np.eye(4)
    for noise in (True, torch.full((4, 1), 0.3, dtype=torch.float64)):
        joint = model.posterior(X, observation_noise=noise).distribution
        np.testing.assert_allclose(joint.covariance_matrix, noisy, rtol=1e-10)
    np.testing.assert_allclose(model.score_covariance(items), noisy, rtol=1e-10)
    np.testing.assert_allclose(
        model.score_variance(items), noisy.diagonal(), rtol=1e-10
    )


def test_posterior_transforms_and_outputs_as_in_botorch(problem: Problem) -> None:
    model = conditioned(problem)
    assert model.num_outputs == 1
    assert model.batch_shape == torch.Size()
    X = torch.tensor([[1.0], [9.0]]).double()
    double = ScalarizedPosteriorTransform(weights=torch.tensor([2.0]).double())
    scaled = model.posterior(X, [0], posterior_transform=double)
    torch.testing.assert_close(scaled.mean, 2 * model.posterior(X).mean)
    with pytest.raises(ValueError, match="expected \\[0\\], the only output"):
        model.posterior(X, output_indices=[1])


def test_lookahead_conditions_variances_and_leaves_no_trace(problem: Problem) -> None:
    model, other = conditioned(problem), conditioned(problem)
    before = (model.performance_mean(), model.performance_variance())
    with model.lookahead() as add:
        add(1)
        inside = model.performance_variance()
        assert model.performance_mean() == pytest.approx(float(before[0]), rel=1e-14)
    other.append(1, -5.0)
    assert float(inside) == float(other.performance_variance())
    assert (model.performance_mean(), model.performance_variance()) == before
