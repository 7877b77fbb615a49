"""What fixes a DISCO plan, besides the references."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gp_eval.disco.predictors import PredictorName
from gp_eval.disco.selection_scores import DisagreementScore

__all__ = ["Choice", "DiscoOptions", "Source"]

Choice = DisagreementScore | Literal["random", "given"]
Source = Literal["auto", "probabilities", "scores"]


class DiscoOptions(BaseModel):
    """Options of :meth:`~gp_eval.disco.DiscoPlan.fit`.

    Attributes:
        k: Number of items to choose.
        choice: ``"jsd"``, ``"pds"`` or ``"pds-per-class"``: by disagreement.
            ``"random"``: a uniform sample, for comparison. ``"given"``: the items are
            passed to ``fit``.
        guiding: Number ``M`` of references whose disagreement counts, drawn by the
            seed; ``None`` for all.
        stratify: Whether every group of items gets its share.
        choose_from: What disagreement is computed from; ``"auto"`` is probabilities
            where the references have them, else scores.
        signature: What signatures are made of; ``"auto"`` likewise.
        temperature: Whether each model's probabilities are scaled to the temperature
            that fits the labels best: over all items for the choice, over the chosen
            items, which are all that a later model has, for signatures.
        pca: At most so many principal components; ``None`` for none. The GP sees whole
            signatures: with what components leave out it would lose sight of how
            unlike the references a model is, and of 95 % intervals from 20 references
            about 10 % would hold.
        umap: Number of UMAP components in place of PCA; needs umap-learn.
        predictor: ``"gp"``, ``"ridge"``, ``"lasso"``, ``"knn"``, ``"random-forest"``,
            ``"boosting"``, or ``"mean"``: the mean of the chosen items' scores, for
            random items only.
        predictor_options: See :func:`~gp_eval.disco.fit_predictor`.
        seed: Fixes whatever is random.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    k: Annotated[int, Field(ge=1)] = 100
    choice: Choice = "jsd"
    guiding: Annotated[int, Field(ge=2)] | None = None
    stratify: bool = False
    choose_from: Source = "auto"
    signature: Source = "auto"
    temperature: bool = False
    pca: Annotated[int, Field(ge=1)] | None = 256
    umap: Annotated[int, Field(ge=1)] | None = None
    predictor: PredictorName | Literal["mean"] = "gp"
    predictor_options: dict[str, Any] = {}
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.predictor == "mean" and self.choice != "random":
            raise ValueError(
                "predictor: 'mean' needs choice='random': models disagree on the "
                f"items chosen by {self.choice!r}, which are no sample of the "
                "benchmark, and their mean is off by 14 to 48 points; use 'gp', "
                "'ridge' or another predictor"
            )
        if self.choice == "random" and (self.stratify or self.guiding is not None):
            raise ValueError(
                "choice: 'random' is a uniform sample: it takes neither guiding= nor "
                "stratify="
            )
        if self.predictor == "mean" and self.predictor_options:
            raise ValueError("predictor_options: 'mean' takes none")
        if self.predictor == "mean" and self.signature == "probabilities":
            raise ValueError("signature: the mean is of scores, got 'probabilities'")
        return self
