"""Whether DISCO errs on miscalibrated models (Appendix E of its paper)."""

from __future__ import annotations

import pandas as pd
import torch
from scipy.stats import pearsonr, spearmanr
from torch import Tensor

from gp_eval.data import References
from gp_eval.errors import DataError

__all__ = ["error_correlations", "expected_calibration_error", "mean_confidence"]


def mean_confidence(probabilities: Tensor) -> Tensor:
    """Mean over the items of the most probable class's probability, shape ``K``.

    Args:
        probabilities: ``K x N x C``.
    """
    return probabilities.amax(-1).double().mean(-1)


def expected_calibration_error(
    probabilities: Tensor, labels: Tensor, *, n_bins: int = 15
) -> Tensor:
    r"""Expected calibration error of each model, shape ``K``.

    :math:`\sum_b \frac{n_b}{N} |\mathrm{acc}_b - \mathrm{conf}_b|` over bins of equal
    width of the confidence, the right end of a bin inside; the lowest class wins a tie.

    Args:
        probabilities: ``K x N x C``.
        labels: Right class of each item, shape ``N``.
        n_bins: Number of bins.

    Raises:
        ValueError: For fewer than 1 bin.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins: expected at least 1, got {n_bins}")
    confidence, predicted = probabilities.double().max(-1)
    excess = (predicted == labels).double() - confidence
    place = (confidence * n_bins).ceil().long().clamp(1, n_bins) - 1
    sums = torch.zeros(len(confidence), n_bins, dtype=torch.float64)
    sums.scatter_add_(1, place, excess)
    return sums.abs().sum(-1) / confidence.shape[1]


def error_correlations(rows: pd.DataFrame, scores: References) -> pd.DataFrame:
    """Correlation over models of DISCO's error with calibration and confidence.

    The error of a model is the mean absolute error over the splits in which it was a
    target. A correlation is of the models, not of the items: a few dozen of them leave
    it vague, which the interval tells.

    Args:
        rows: As of :func:`.run_trials`.
        scores: The models with ``probabilities`` and ``labels``.

    Returns:
        A row for each setting and measure (``"calibration error"``, ``"mean
        confidence"``): ``pearson`` with the ends ``low`` and ``high`` of its 95 %
        interval (Fisher's), ``spearman`` and ``n_models``.

    Raises:
        DataError: Without probabilities or labels, or with fewer than 4 targets.
    """
    if scores.probabilities is None or scores.labels is None:
        raise DataError("references: calibration needs probabilities and labels")
    measures = pd.DataFrame(
        {
            "calibration error": expected_calibration_error(
                scores.probabilities, scores.labels
            ).numpy(),
            "mean confidence": mean_confidence(scores.probabilities).numpy(),
        },
        index=list(scores.models),
    )
    found = []
    for _, group in rows.groupby("setting", sort=False):
        absolute = (group["predicted"] - group["truth"]).abs()
        error = absolute.groupby(group["model"]).mean()
        if len(error) < 4:
            raise DataError(f"targets: expected at least 4, got {len(error)}")
        for name in measures:
            values = measures[name].reindex(error.index)
            if error.nunique() == 1 or values.nunique() == 1:
                raise DataError(
                    f"targets: all errors or all values of the {name} are equal"
                )
            pearson = pearsonr(error, values)
            interval = pearson.confidence_interval(0.95)
            found.append(
                {
                    **group[["choice", "predictor", "k"]].iloc[0].to_dict(),
                    "measure": name,
                    "pearson": float(pearson.statistic),
                    "low": float(interval.low),
                    "high": float(interval.high),
                    "spearman": float(spearmanr(error, values).statistic),
                    "mae": float(error.mean()),
                    "n_models": len(error),
                }
            )
    return pd.DataFrame(found)
