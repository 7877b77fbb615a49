"""RS-Learn: a regression across models, from a few items to the benchmark score."""

from __future__ import annotations

from typing import ClassVar

import torch

from gp_eval.data import References
from gp_eval.models.baselines.sampling import SampleModel, require_complete
from gp_eval.models.protocol import Performance

__all__ = [
    "BayesianRandomSamplingLearn",
    "RandomSamplingLearn",
    "candidate_penalties",
    "require_several",
]


def require_several(name: str, references: References) -> None:
    """Raise an error that names the model for fewer than two references."""
    require_complete(name, references)
    if len(references.models) < 2:
        raise ValueError(
            f"{name}: expected at least 2 references, got 1: it is fitted across them"
        )


def candidate_penalties(n_references: int) -> tuple[float, ...]:
    """Penalties among which leave-one-out chooses: scikit-learn's defaults.

    Two references leave one to fit, and every penalty has the same error. The first is
    scikit-learn's choice among equals; rounding would make another one.
    """
    return (0.1, 1.0, 10.0) if n_references > 2 else (0.1,)


class _AcrossModels(SampleModel):
    """What both regressions share: ``K`` samples, one for each reference."""

    def __init__(self, references: References) -> None:
        require_several(self.name, references)
        super().__init__(references)
        self.phi = references.scores
        self.outcome = references.performance
        self._prior = Performance(self.outcome.mean(), self.outcome.var())


class RandomSamplingLearn(_AcrossModels):
    r"""Ridge regression of the benchmark score on the scores of the evaluated items.

    Source: "Random-Sampling-Learn" of Zhang et al. (2025, ``zhang2025how``):
    scikit-learn's ``RidgeCV()`` (penalties 0.1, 1 and 10 by leave-one-out, with an
    intercept) fitted across the ``K`` references, whose benchmark scores are known,
    and applied to the target. With two references the penalty is 0.1, see
    :func:`candidate_penalties`.

    They give no variance. Here it is the mean squared leave-one-out error of the chosen
    penalty over the references: how far the regression misses a model like them. A
    target outside of their range, as in extrapolation, is missed by more.

    At ``n = N`` it does *not* end at the truth, nor is the variance 0: the penalty
    keeps the regression from becoming the mean, and the target's own scores are only
    features. At ``n = 0`` it is the mean and the sample variance of the references'
    benchmark scores, and ``n = 1`` is no exception. Weighted items are supported: the
    benchmark scores of the references are weighted then. Equal references give a
    variance of 0.

    Args:
        references: Complete reference scores of at least two models.

    Raises:
        ValueError: For fewer than two references.
        DataError: For missing cells.
    """

    name: ClassVar[str] = "rs-learn"

    def _estimate(self) -> Performance:
        from sklearn.linear_model import RidgeCV

        regression = RidgeCV(list(candidate_penalties(self.phi.shape[1])))
        regression.fit(self.phi[self.items].T.numpy(), self.outcome.numpy())
        predicted = regression.predict(self.scores.unsqueeze(0).numpy())
        return Performance(
            torch.from_numpy(predicted)[0],
            torch.tensor(-float(regression.best_score_), dtype=torch.float64),
        )


class BayesianRandomSamplingLearn(_AcrossModels):
    r"""Bayesian ridge regression of the benchmark score on the evaluated items.

    Source: "Bayes-RS-Learn" in Section 5 of the BayesAME paper; the regression is
    scikit-learn's ``BayesianRidge()`` with its defaults (Appendix C.1), fitted across
    the references as in :class:`RandomSamplingLearn`. Estimate and variance are its
    predictive mean and variance at the target's scores.

    *Intercept*: the paper prints :math:`s_C^\top \mu^\beta` and :math:`s_C^\top \Sigma
    s_C + \hat\alpha^{-1}` of a model without one, and says that scikit-learn's defaults
    are used, which have one. The default here has one, and both are taken at :math:`s_C
    - \bar\phi_C`, the scores less the mean of the references, as in scikit-learn's
    ``predict(return_std=True)``; ``fit_intercept=False`` is what is printed.

    At ``n = N`` it does *not* end at the truth, nor is the variance 0, as published. At
    ``n = 0`` it is the mean and the sample variance of the references' benchmark
    scores, and ``n = 1`` is no exception. Weighted items are supported: the benchmark
    scores of the references are weighted then. With equal references there is nothing
    to learn; the coefficients keep their prior covariance ``I`` and the variance is
    large.

    Args:
        references: Complete reference scores of at least two models.
        fit_intercept: Whether the regression has an intercept.

    Raises:
        ValueError: For fewer than two references.
        DataError: For missing cells.
    """

    name: ClassVar[str] = "bayes-rs-learn"

    def __init__(self, references: References, *, fit_intercept: bool = True) -> None:
        super().__init__(references)
        self.fit_intercept = fit_intercept

    def _estimate(self) -> Performance:
        from sklearn.linear_model import BayesianRidge

        regression = BayesianRidge(fit_intercept=self.fit_intercept)
        regression.fit(self.phi[self.items].T.numpy(), self.outcome.numpy())
        mean, std = regression.predict(
            self.scores.unsqueeze(0).numpy(), return_std=True
        )
        return Performance(torch.from_numpy(mean)[0], torch.from_numpy(std)[0].square())
