"""AIPW: a sample mean, corrected by a regression on the reference scores."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.models.baselines.sampling import (
    SampleModel,
    require_uniform,
    sample_variance,
    sampling_variance,
    score_variance,
)
from gp_eval.models.protocol import Performance

__all__ = ["AIPW", "BayesianAIPW", "aipw_estimate"]


def aipw_estimate(scores: Tensor, predicted: Tensor, items: Tensor) -> Tensor:
    r"""The AIPW estimator of Section 5 of the BayesAME paper, a scalar.

    .. math::

        \hat R = \frac1n \sum_{i \in C} s_i + \frac{1}{1 + \frac{n}{N - n}} \left(
            \frac{1}{N - n} \sum_{i \notin C} \mu_i - \frac1n \sum_{i \in C} \mu_i
        \right)

    Args:
        scores: Scores of the evaluated items, shape ``n`` with ``0 < n < N``.
        predicted: Predictions :math:`\mu` of all items, shape ``N``.
        items: The evaluated items, shape ``n``.
    """
    n, n_items = scores.shape[0], predicted.shape[0]
    rest = torch.ones(n_items, dtype=torch.bool)
    rest[items] = False
    correction = predicted[rest].mean() - predicted[items].mean()
    return scores.mean() + (n_items - n) / n_items * correction


class AIPW(SampleModel):
    r"""Augmented inverse propensity weighting with ridge regression.

    Source: "AIPW" of Zhang et al. (2025, ``zhang2025how``) with the estimator as
    Section 5 of the BayesAME paper prints it (:func:`aipw_estimate`). The regression is
    scikit-learn's ``Ridge(alpha=10)`` of :math:`s_i` on :math:`\phi_i`, the scores of
    the references, with an intercept as in their code. The intercept makes the mean
    residual 0, and the estimator equals the plug-in :math:`\frac1N (\sum_{i \in C} s_i
    + \sum_{i \notin C} \mu_i)`.

    *Departure from their code*, which computes :math:`\frac{1}{N - n} \sum_{i \notin C}
    \mu_i + \frac1n \sum_{i \in C} (s_i - \mu_i) / (1 + \frac{n}{N - n})`. There the
    factor is on the term that is 0, which leaves the mean prediction of the rest: the
    evaluated scores are not used as such, and it does not end at the truth.

    The paper gives a variance for the Bayesian form only. Here it is the classical one
    of a regression estimator under sampling without replacement, :math:`\frac{s_e^2}{n}
    (1 - \frac{n}{N})` with the sample variance of the residuals :math:`e_i = s_i -
    \mu_i` in place of that of the scores. It takes the fitted regression for the true
    one; with more references than evaluated items the residuals are too small and so
    is the variance.

    At ``n = N`` the estimate is exactly the mean and the variance 0. At ``n = 1`` the
    estimate is the one score and :math:`s_e^2`, which is undefined, is the variance of
    a single score pooled over the references. At ``n = 0`` the estimate is the mean
    score of the references with that variance.

    Args:
        references: Complete reference scores, without item weights.
        ridge_alpha: Penalty of the regression.

    Raises:
        ValueError: For weighted items, or a penalty that is not positive.
        DataError: For missing cells.
    """

    name: ClassVar[str] = "aipw"
    adapts_off_range: ClassVar[bool] = True

    def __init__(self, references: References, *, ridge_alpha: float = 10.0) -> None:
        require_uniform(self.name, references)
        if not ridge_alpha > 0.0:
            raise ValueError(f"ridge_alpha: expected a number > 0, got {ridge_alpha}")
        super().__init__(references)
        self.ridge_alpha = ridge_alpha
        self.phi = references.scores
        self._single = score_variance(references)

    def _estimate(self) -> Performance:
        from sklearn.linear_model import Ridge

        if self.coreset.complete:
            return self._exact()
        items, scores = self.items, self.scores
        regression = Ridge(alpha=self.ridge_alpha)
        regression.fit(self.phi[items].numpy(), scores.numpy())
        predicted = torch.from_numpy(regression.predict(self.phi.numpy()))
        residual = sample_variance(scores - predicted[items], self._single)
        return Performance(
            aipw_estimate(scores, predicted, items),
            sampling_variance(residual, self.coreset.n, self.n_items),
        )


class BayesianAIPW(SampleModel):
    r"""AIPW with Bayesian ridge regression.

    Source: "Bayes-AIPW" in Section 5 of the BayesAME paper; the regression is
    scikit-learn's ``BayesianRidge()`` with its defaults (Appendix C.1). With
    :math:`d = \bar\phi_{E \setminus C} - \bar\phi_C`, the posterior covariance
    :math:`\Sigma` of the coefficients (``sigma_``) and the noise precision
    :math:`\hat\alpha` (``alpha_``), the variance is

    .. math::

        \frac{d^\top \Sigma d + \hat\alpha^{-1} (\frac1n + \frac{1}{N - n})}
            {(1 + \frac{n}{N - n})^2}

    *Intercept.* The paper prints a model without one; scikit-learn's default has one,
    and so has this. It is no departure for the variance: under a flat prior the
    intercept has the variance :math:`\hat\alpha^{-1} / n` at the mean of the evaluated
    :math:`\phi_i`, so that the numerator above is the exact predictive variance of the
    mean of the other scores. With the intercept the estimate equals the plug-in, see
    :class:`AIPW`.

    At ``n = N`` the estimate is exactly the mean and the variance 0. At ``n = 1``
    scikit-learn's regression has zero coefficients of prior covariance ``I``, so the
    estimate is the one score and the variance about :math:`|d|^2`. At ``n = 0`` the
    estimate is the mean score of the references with the variance of a single score.
    As long as all evaluated scores are equal the regression takes them for noiseless
    (:math:`\hat\alpha^{-1} \approx 10^{-6}`) and the variance is next to 0; that is the
    published method and is not patched.

    Args:
        references: Complete reference scores, without item weights.

    Raises:
        ValueError: For weighted items.
        DataError: For missing cells.
    """

    name: ClassVar[str] = "bayes-aipw"
    adapts_off_range: ClassVar[bool] = True

    def __init__(self, references: References) -> None:
        require_uniform(self.name, references)
        super().__init__(references)
        self.phi = references.scores

    def _estimate(self) -> Performance:
        from sklearn.linear_model import BayesianRidge

        if self.coreset.complete:
            return self._exact()
        items, scores = self.items, self.scores
        regression = BayesianRidge()
        regression.fit(self.phi[items].numpy(), scores.numpy())
        predicted = torch.from_numpy(regression.predict(self.phi.numpy()))
        n, rest = self.coreset.n, self.n_items - self.coreset.n
        evaluated = self.phi[items]
        difference = (self.phi.sum(0) - evaluated.sum(0)) / rest - evaluated.mean(0)
        spread = difference @ torch.from_numpy(regression.sigma_) @ difference
        noise = (1.0 / n + 1.0 / rest) / float(regression.alpha_)
        return Performance(
            aipw_estimate(scores, predicted, items),
            (spread + noise) * (rest / self.n_items) ** 2,
        )
