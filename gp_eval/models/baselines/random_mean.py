"""RS-Mean: the mean of a random sample."""

from __future__ import annotations

from typing import ClassVar

from gp_eval.data import References
from gp_eval.models.baselines.sampling import (
    SampleModel,
    require_uniform,
    sample_variance,
    sampling_variance,
    score_variance,
)
from gp_eval.models.protocol import Performance

__all__ = ["RandomMean"]


class RandomMean(SampleModel):
    r"""Mean of the evaluated scores, with items chosen at random.

    Source: "RS-Mean" in Section 5 of the BayesAME paper, without departure. The
    variance is Eq. (9) with :math:`w_i = 1 / n`: :math:`\frac{s^2}{n} (1 -
    \frac{n}{N})`, that of sampling without replacement.

    At ``n = N`` the estimate is exactly the mean and the variance 0. At ``n = 1``,
    where :math:`s` is undefined, :math:`s^2` is the variance of a single score pooled
    over the references. At ``n = 0`` the estimate is the mean score of the references
    with the variance of a single score. As long as all evaluated scores are equal,
    :math:`s^2` and with it the variance are 0 from ``n = 2`` on; that is the published
    formula and is not patched.

    Args:
        references: Complete reference scores, without item weights. They are used at
            ``n < 2`` only.

    Raises:
        ValueError: For weighted items.
        DataError: For missing cells.
    """

    name: ClassVar[str] = "rs-mean"
    adapts_off_range: ClassVar[bool] = True

    def __init__(self, references: References) -> None:
        require_uniform(self.name, references)
        super().__init__(references)
        self._single = score_variance(references)

    def _estimate(self) -> Performance:
        scores = self.scores
        variance = sample_variance(scores, self._single)
        return Performance(
            scores.mean(), sampling_variance(variance, self.coreset.n, self.n_items)
        )
