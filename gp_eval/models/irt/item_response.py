"""Item response models as models of the harness."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.models.coreset import Coreset
from gp_eval.models.irt.ability import AbilityPosterior
from gp_eval.models.irt.beta import BetaResponse
from gp_eval.models.irt.family import ItemFamily
from gp_eval.models.irt.item_parameters import Inference, ItemParameters, fit_items
from gp_eval.models.irt.two_parameter import TwoParameterLogistic
from gp_eval.models.protocol import Performance

__all__ = ["ItemResponse2PL", "ItemResponseBeta", "find_items"]


class _ItemResponse:
    r"""Plug-in estimate of an item response model.

    .. math::

        \hat R = \sum_{i \in C} w_i s_i + \sum_{i \notin C} w_i E[s_i \mid s_C]

    Eq. (5) of the BayesAME paper with its :math:`w = 1 / N`.
    """

    def __init__(
        self, references: References, items: ItemParameters, refresh: int
    ) -> None:
        if refresh < 1:
            raise ValueError(
                f"{items.family.name}: refresh: expected at least 1, got {refresh}"
            )
        self.item_parameters = items
        self.refresh = refresh
        self.coreset = Coreset(references)
        self.ability = AbilityPosterior(items, references.item_weights)
        self._performance = self._assess()

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that the family cannot have."""
        values = torch.tensor([score], dtype=torch.float64)
        self.item_parameters.family.statistics(values)

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, one after the other.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that
                the family cannot have; nothing is changed then.
        """
        pairs = self.coreset.check(items, scores)
        values = torch.tensor([score for _, score in pairs], dtype=torch.float64)
        self.item_parameters.family.statistics(values)
        for item, score in pairs:
            self.coreset.add(item, score)
            self.ability.append(item, score)
            if self.coreset.n % self.refresh == 0 or self.coreset.complete:
                self._performance = self._assess()

    def _assess(self) -> Performance:
        observed = self.coreset.observed
        if self.coreset.complete:
            return Performance(observed, torch.zeros_like(observed))
        mean, variance = self.ability.rest()
        return Performance(observed + mean, variance)

    def performance(self) -> Performance:
        """Estimate and variance as of the last refresh."""
        return self._performance

    def acquisition(self) -> None:
        """``None``: items are selected at random."""
        return None


class ItemResponse2PL(_ItemResponse):
    r"""IRT for binary scores: the 2-PL of Polo et al. (2024) with the p-IRT estimate.

    The baseline of Section 5 of the BayesAME paper: items are learned from the
    references once, the target's scores fit its ability, and the estimate is Eq. (5)
    with :math:`w = 1 / N`. The variance is that of the benchmark score: of ability,
    item draws *and* unseen scores. At ``n = N`` the estimate is the mean and the
    variance 0. Items are selected at random.

    Departures: the ability is integrated on a grid rather than sampled, at every
    answer (``refresh=50`` holds estimate and variance between multiples of 50, as
    the paper's piecewise-constant curves do; ``n = N`` always counts as one). The
    target does not reweigh the item draws: they come from the references alone.
    The paper samples items by MCMC; the default here is their mode.

    Args:
        references: Complete binary reference scores.
        inference: ``"map"``, or ``"mcmc"``; see
            :func:`~gp_eval.models.irt.item_parameters.fit_items`.
        draws: Posterior draws of the items of ``"mcmc"``.
        refresh: Reassess at multiples of this number of evaluations.
        seed: Fixes the draws of ``"mcmc"``.
        items: Item parameters fitted before; the three options of fitting are then
            not used.

    Raises:
        DataError: For missing cells.
        ValueError: For scores other than 0 and 1, or ``items`` of other items or of
            another family.
    """

    def __init__(
        self,
        references: References,
        *,
        inference: Inference = "map",
        draws: int = 50,
        refresh: int = 1,
        seed: int = 0,
        items: ItemParameters | None = None,
    ) -> None:
        family = TwoParameterLogistic()
        items = find_items(
            references, family, items, inference=inference, draws=draws, seed=seed
        )
        super().__init__(references, items, refresh)


class ItemResponseBeta(_ItemResponse):
    r"""IRT for scores in [0, 1]: the Beta model of Noel & Dauvier and Chen et al.

    As :class:`ItemResponse2PL` with
    :class:`~gp_eval.models.irt.beta.BetaResponse`, and with the same departures. The
    published family has no free precision, so its intervals are far too narrow on
    real scores. Scores are clipped for the ability; observed ones count as they are.

    Args:
        references: Complete reference scores in [0, 1].
        inference: ``"map"``, or ``"mcmc"``; see
            :func:`~gp_eval.models.irt.item_parameters.fit_items`.
        draws: Posterior draws of the items of ``"mcmc"``.
        refresh: Reassess at multiples of this number of evaluations.
        seed: Fixes the draws of ``"mcmc"``.
        clip: Scores are clipped to ``[clip, 1 - clip]``.
        items: Item parameters fitted before; the four options of fitting are then
            not used.

    Raises:
        DataError: For missing cells.
        ValueError: For scores outside [0, 1], or ``items`` of other items or of
            another family.
    """

    def __init__(
        self,
        references: References,
        *,
        inference: Inference = "map",
        draws: int = 50,
        refresh: int = 1,
        seed: int = 0,
        clip: float = 0.01,
        items: ItemParameters | None = None,
    ) -> None:
        family = BetaResponse(clip=clip)
        items = find_items(
            references, family, items, inference=inference, draws=draws, seed=seed
        )
        super().__init__(references, items, refresh)


def find_items(
    references: References,
    family: ItemFamily,
    items: ItemParameters | None,
    *,
    inference: Inference,
    draws: int,
    seed: int,
) -> ItemParameters:
    """The given item parameters if they fit the references and family, or a fit."""
    if items is None:
        return fit_items(
            references, family, inference=inference, draws=draws, seed=seed
        )
    if items.family.name != family.name:
        raise ValueError(
            f"{family.name}: items were fitted for {items.family.name}; "
            f"fit them with {type(family).__name__}"
        )
    if items.item_ids != references.items:
        raise ValueError(
            f"{family.name}: items: their ids or order differ from the references'"
        )
    return items
