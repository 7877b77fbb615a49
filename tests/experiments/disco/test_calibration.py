from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from populations import population, random_probabilities

from gp_eval.data import References
from gp_eval.disco import DiscoOptions
from gp_eval.errors import DataError
from gp_eval.experiments.disco import (
    error_correlations,
    expected_calibration_error,
    mean_confidence,
    run_trials,
    trials,
)


@pytest.mark.parametrize("n_bins", [1, 7, 15])
def test_calibration_error_is_that_of_literal_bins(n_bins: int) -> None:
    probabilities = random_probabilities(5, 40, 4)
    labels = torch.arange(40) % 4
    found = expected_calibration_error(probabilities, labels, n_bins=n_bins)
    for k in range(5):
        expected = 0.0
        for b in range(n_bins):
            confidences, hits = [], []
            for i in range(40):
                row = probabilities[k, i].tolist()
                top = max(row)
                if b / n_bins < top <= (b + 1) / n_bins:
                    confidences.append(top)
                    hits.append(row.index(top) == int(labels[i]))
            if hits:
                gap = abs(np.mean(hits) - np.mean(confidences))
                expected += len(hits) / 40 * gap
        assert float(found[k]) == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_calibration_error_is_numpy_histograms() -> None:
    probabilities = random_probabilities(3, 200, 5, seed=1)
    labels = torch.arange(200) % 5
    top, predicted = probabilities.max(-1)
    edges = np.linspace(0.0, 1.0, 11)
    for k in range(3):
        right = (predicted[k] == labels).numpy().astype(float)
        excess = np.histogram(top[k], edges, weights=right - top[k].numpy())[0]
        found = expected_calibration_error(probabilities[k : k + 1], labels, n_bins=10)
        assert float(found) == pytest.approx(np.abs(excess).sum() / 200, rel=1e-10)


def test_sure_models_are_calibrated_only_if_right() -> None:
    labels = torch.tensor([0, 1, 1, 0])
    sure = torch.nn.functional.one_hot(labels, 2).double().unsqueeze(0)
    assert float(expected_calibration_error(sure, labels)) == 0.0
    assert float(expected_calibration_error(sure, 1 - labels)) == 1.0
    assert float(mean_confidence(sure)) == 1.0
    with pytest.raises(ValueError, match="n_bins"):
        expected_calibration_error(sure, labels, n_bins=0)


def test_correlations_are_of_the_mean_error_of_each_model() -> None:
    scores = population(30)
    assert scores.probabilities is not None
    assert scores.labels is not None
    rows = run_trials(
        trials(scores, n_splits=4, n_targets=6), [DiscoOptions(k=6, predictor="ridge")]
    )
    table = error_correlations(rows, scores).set_index("measure")
    models = sorted(set(rows["model"]))
    assert list(table["n_models"]) == [len(models)] * 2
    errors = [
        np.mean(
            [
                abs(row.predicted - row.truth)
                for row in rows.itertuples()
                if row.model == name
            ]
        )
        for name in models
    ]
    places = [scores.models.index(name) for name in models]
    for name, values in (
        ("mean confidence", scores.probabilities.amax(-1).mean(-1)),
        (
            "calibration error",
            expected_calibration_error(scores.probabilities, scores.labels),
        ),
    ):
        expected = np.corrcoef(errors, values[places])[0, 1]
        assert table.loc[name, "pearson"] == pytest.approx(expected, rel=1e-9)
        assert table.loc[name, "low"] < expected < table.loc[name, "high"]


def test_correlations_need_labels_and_models() -> None:
    scores = population(10)
    rows = pd.DataFrame(
        {
            "setting": 0,
            "choice": "jsd",
            "predictor": "gp",
            "k": 3,
            "model": ["m0", "m1", "m2", "m3"],
            "predicted": [0.5] * 4,
            "truth": [0.4, 0.4, 0.4, 0.4],
        }
    )
    bare = References(scores.scores, scores.items, scores.models)
    with pytest.raises(DataError, match="needs probabilities and labels"):
        error_correlations(rows, bare)
    with pytest.raises(DataError, match="expected at least 4, got 3"):
        error_correlations(rows[:3], scores)
    with pytest.raises(DataError, match="all errors or all values of the .* are equal"):
        error_correlations(rows, scores)
