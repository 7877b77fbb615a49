"""ProEval: Bayesian quadrature with a prior learned from the references."""

from __future__ import annotations

from typing import Literal

from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.acquisition.variance_reduction import qVarianceReduction
from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.models.baselines.latent_scores import LatentScoreModel
from gp_eval.models.coreset import Coreset
from gp_eval.models.protocol import Performance

__all__ = ["ProEval", "ProEvalVersion", "latent_score_models"]

ProEvalVersion = Literal["0.1.1", "2026-05"]


class ProEval:
    r"""ProEval (Huang et al. 2026): "New Model", "Score Features", no abstention.

    Source: github.com/google-deepmind/proeval and PyPI ``proeval``. Latent scores
    :math:`\theta \sim N(\bar\phi, S)`, ``S`` the sample covariance over references,
    are observed as :math:`s_i = \theta_i + N(0, 0.3)`; nothing is learned. It reports
    mean and variance of :math:`R = \frac1N \sum_i \theta_i` and selects
    :math:`\arg\max_i \operatorname{Cov}(R, \theta_i)^2 / (\operatorname{Var} \theta_i +
    0.3)`. Prior, variances and selection do not depend on the target's scores.

    *At* ``n = N`` *it does not end at the truth and its variance is not 0*: ``R`` is
    the mean of the latent scores, and noise stays between them and the observed ones.
    That is the published method and is not patched.

    Versions: ``"0.1.1"`` (PyPI, 2026-09) uses one noise throughout. ``"2026-05"``
    (commit 919dcf0) had :math:`\sigma^2` for :math:`1 / \sigma^2` in the selection,
    which is selection by a belief of noise :math:`1 / 0.3`; its estimates are those of
    0.1.1 on the items it selects. (Its array of estimates begins with the prior mean,
    one entry earlier than here, where the state after ``n`` items has used ``n``.)

    Departures: scores are not turned into errors ``1 - s``, under which every quantity
    here is the same or mirrored; estimates are not clipped, as published; ties within
    ``1e-12`` go by the harness's rule, so of items that are equal to all references
    the one of lowest *rank* comes first, in place of the lowest index. Weighted items
    have :math:`R = \sum_i w_i \theta_i`, which the source does not know. The random
    start (``n_init``, 0 by default) and the rounded estimate are left out.

    Args:
        references: Complete reference scores of at least two models.
        version: Which published selection rule.
        noise: :math:`\sigma^2`, in squared score units.

    Raises:
        ValueError: For fewer than two references, an unknown version or a noise that
            is not positive.
        DataError: For missing cells.
    """

    def __init__(
        self,
        references: References,
        *,
        version: ProEvalVersion = "0.1.1",
        noise: float = 0.3,
    ) -> None:
        self.coreset = Coreset(references)
        self.model, self.selection = latent_score_models(
            references, version=version, noise=noise
        )
        self._acquisition = qVarianceReduction(self.selection)

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, in any order.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that
                is not finite; nothing is changed then.
        """
        for item, score in self.coreset.check(items, scores):
            self.coreset.add(item, score)
            self.model.append(item, score)
            if self.selection is not self.model:
                self.selection.append(item, score)

    def performance(self) -> Performance:
        """Posterior mean and variance of the mean latent score."""
        return Performance(
            self.model.performance_mean(), self.model.performance_variance()
        )

    def acquisition(self) -> AcquisitionFunction:
        """Reduction of the variance of ``R``, by the selecting belief."""
        return self._acquisition


def latent_score_models(
    references: References, *, version: ProEvalVersion, noise: float
) -> tuple[LatentScoreModel, LatentScoreModel]:
    """The belief that estimates and the one that selects: one object in 0.1.1.

    Args:
        references: Complete reference scores of at least two models.
        version: Which published selection rule.
        noise: Noise variance of the scores.
    """
    if version not in ("0.1.1", "2026-05"):
        raise ValueError(
            f"proeval: version: expected '0.1.1' or '2026-05', got {version!r}"
        )
    if not 0.0 < noise < float("inf"):
        raise ValueError(f"proeval: noise: expected sigma^2 > 0, got {noise}")
    if references.n_missing:
        raise DataError(
            f"proeval: {references.n_missing} missing cells; read the references with "
            "missing='drop-items', 'drop-models' or 'mean'"
        )
    if len(references.models) < 2:
        raise ValueError(
            "proeval: expected at least 2 references, got 1: its prior is their "
            "sample covariance"
        )
    scores, weights = references.scores, references.item_weights
    model = LatentScoreModel(scores, weights, noise=noise)
    if version == "0.1.1":
        return model, model
    return model, LatentScoreModel(scores, weights, noise=1.0 / noise)
