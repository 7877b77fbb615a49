"""A DISCO plan: items chosen once, and a predictor from the responses to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pandas as pd
import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.data.validation import positions, some
from gp_eval.disco.options import DiscoOptions
from gp_eval.disco.prediction import Prediction, Predictor
from gp_eval.disco.predictors import Linear, fit_predictor
from gp_eval.disco.probabilities import (
    TOLERANCE,
    class_mask,
    fit_temperatures,
    soften,
)
from gp_eval.disco.responses import Responses
from gp_eval.disco.selection import item_order, require_labels, resolve
from gp_eval.disco.signatures import (
    Principal,
    Reducer,
    Umap,
    probability_signatures,
    score_signatures,
)
from gp_eval.errors import DataError

__all__ = ["DiscoPlan"]


@dataclass(frozen=True)
class DiscoPlan:
    """Which items to run later models on, and how their benchmark score follows.

    Attributes:
        options: What it was made with.
        items: Ids of the ``k`` chosen items, most disagreed on first.
        n_items: Items ``N`` of the benchmark.
        models: Ids of the references.
        fingerprint: Of the references.
        n_classes: ``C`` of the probabilities in signatures; ``None`` for scores.
        labels: Right class of each chosen item, shape ``k``, where probabilities are
            scaled by temperatures.
        classes: Classes of each chosen item, ``k x C``, likewise.
        reducer: From signatures to features.
        predictor: From features to benchmark scores.
        features: Features of the references, ``K x F``.
        targets: Benchmark scores of the references, shape ``K``.
    """

    options: DiscoOptions
    items: tuple[str, ...]
    n_items: int
    models: tuple[str, ...]
    fingerprint: str
    n_classes: int | None
    labels: Tensor | None
    classes: Tensor | None
    reducer: Reducer
    predictor: Predictor
    features: Tensor
    targets: Tensor

    @classmethod
    def fit(
        cls,
        references: References,
        options: DiscoOptions | None = None,
        *,
        items: Sequence[str] | None = None,
    ) -> Self:
        """Choose the items and fit the predictor.

        What is predicted is the weighted mean of the references' items: with
        ``references.macro()``, every group counts the same.

        Args:
            references: Complete references.
            options: Default :class:`~gp_eval.disco.DiscoOptions`.
            items: Ids chosen by other means, with ``choice="given"``.

        Raises:
            ValueError: For options that do not fit the references.
            DataError: For references that lack what the options need.
        """
        options = options or DiscoOptions()
        if references.n_missing:
            raise DataError(
                f"references: {references.n_missing} missing cells; read them with "
                "missing='drop-items', 'drop-models' or 'mean'"
            )
        if options.temperature and references.probabilities is None:
            raise DataError("temperature: the references have no probabilities")
        rows = _chosen(references, options, items)
        source = "scores"
        if options.predictor != "mean":
            source = resolve(options.signature, references, name="signature")
        chosen = [references.items[i] for i in rows.tolist()]
        responses = Responses.from_references(references).on(chosen)
        n_classes = labels = classes = None
        if source == "probabilities" and responses.probabilities is not None:
            n_classes = int(responses.probabilities.shape[-1])
            if options.temperature:
                labels = require_labels(references)[rows]
                classes = class_mask(responses.probabilities)
        signatures = _signatures(responses, source, labels, classes)
        reducer, predictor = _fit(signatures, references, rows, options)
        return cls(
            options=options,
            items=tuple(chosen),
            n_items=len(references.items),
            models=references.models,
            fingerprint=references.fingerprint,
            n_classes=n_classes,
            labels=labels,
            classes=classes,
            reducer=reducer,
            predictor=predictor,
            features=reducer(signatures),
            targets=references.performance,
        )

    def predict(self, responses: Responses | References | pd.DataFrame) -> Prediction:
        """Benchmark scores of later models.

        Args:
            responses: Their scores or probabilities on the chosen items, in any order;
                a table has items as index and models as columns. Other items are
                ignored and counted.

        Raises:
            DataError: If chosen items or responses are missing, with the ids.
        """
        if isinstance(responses, pd.DataFrame):
            responses = Responses.from_frame(responses)
        elif isinstance(responses, References):
            responses = Responses.from_references(responses)
        chosen = responses.on(self.items)
        probabilities = chosen.probabilities
        if self.n_classes is not None:
            if probabilities is None:
                raise DataError(
                    "responses: the plan's signatures are class probabilities, got "
                    "scores only"
                )
            fitting = _with_classes(probabilities, self.n_classes)
            chosen = replace(chosen, probabilities=fitting)
        source = "scores" if self.n_classes is None else "probabilities"
        signatures = _signatures(chosen, source, self.labels, self.classes)
        features = self.reducer(signatures)
        return replace(
            self.predictor.predict(features),
            models=responses.models,
            n_ignored=len(responses.items) - len(self.items),
        )

    def save(self, folder: str | Path) -> None:
        """Write ``plan.json`` and ``arrays.npz`` into a folder; see :mod:`.storage`."""
        from gp_eval.disco.storage import save_plan

        save_plan(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> DiscoPlan:
        """Read a folder that :meth:`save` wrote, and check that it predicts the same.

        Raises:
            StateMismatchError: For a folder that is no plan, damaged, or whose
                predictions of the references are not those saved.
        """
        from gp_eval.disco.storage import load_plan

        return load_plan(Path(folder))


def _chosen(
    references: References, options: DiscoOptions, items: Sequence[str] | None
) -> Tensor:
    if (items is not None) != (options.choice == "given"):
        raise ValueError(
            f"items: expected with choice='given' only, got choice={options.choice!r}"
            + ("" if items is not None else " without items")
        )
    if items is not None:
        return torch.tensor(positions("items", references.items, items))
    if options.k > len(references.items):
        raise ValueError(
            f"k: expected at most the {len(references.items)} items, got {options.k}"
        )
    return item_order(references, options)[: options.k]


def _with_classes(probabilities: Tensor, n_classes: int) -> Tensor:
    """The same with ``n_classes``: what may be more or fewer of is padding alone."""
    more = probabilities[..., n_classes:]
    if bool((more.nan_to_num() != 0.0).any()):
        raise DataError(
            f"probabilities: expected {n_classes} classes as in the references, got "
            f"{probabilities.shape[-1]}"
        )
    missing = max(0, n_classes - probabilities.shape[-1])
    return torch.nn.functional.pad(probabilities[..., :n_classes], (0, missing))


def _signatures(
    responses: Responses, source: str, labels: Tensor | None, classes: Tensor | None
) -> Tensor:
    """Signatures ``T x D`` of responses to the chosen items."""
    if source == "probabilities" and responses.probabilities is not None:
        probabilities = responses.probabilities
        _require_answers(responses, probabilities.isnan().any(-1).T, "probabilities")
        _require_distributions(responses, probabilities)
        if labels is not None:
            temperatures = fit_temperatures(probabilities, labels, mask=classes)
            probabilities = soften(probabilities, temperatures, mask=classes)
        return probability_signatures(probabilities)
    if responses.scores is None:
        raise DataError("responses: the plan's signatures are scores, got none")
    _require_answers(responses, responses.scores.isnan(), "scores")
    _require_answers(responses, responses.scores.isinf(), "finite scores")
    return score_signatures(responses.scores)


def _require_answers(responses: Responses, gaps: Tensor, what: str) -> None:
    """No gaps, ``k x T``, on the chosen items."""
    if bool(gaps.any()):
        where = [
            f"{responses.items[i]} of {responses.models[t]}" for i, t in gaps.nonzero()
        ]
        raise DataError(
            f"responses: missing {what} on chosen items: {some(where, limit=20)}"
        )


def _require_distributions(responses: Responses, probabilities: Tensor) -> None:
    """Numbers >= 0 with sum 1 over the classes, or an error with the ids."""
    off = (probabilities.double().sum(-1) - 1.0).abs() > TOLERANCE
    wrong = (off | (probabilities < 0.0).any(-1)).T
    if bool(wrong.any()):
        where = [
            f"{responses.items[i]} of {responses.models[t]}" for i, t in wrong.nonzero()
        ]
        raise DataError(
            "probabilities: expected numbers >= 0 with sum 1 over the classes, not so "
            f"for {some(where)}; log-likelihoods go through "
            "probabilities_from_log_likelihoods"
        )


def _fit(
    signatures: Tensor, references: References, rows: Tensor, options: DiscoOptions
) -> tuple[Reducer, Predictor]:
    if options.predictor == "mean":
        weights = references.item_weights[rows]
        nothing = torch.zeros(len(rows), dtype=torch.float64)
        return Principal(nothing, None), Linear(weights / weights.sum(), 0.0)
    reducer: Reducer
    if options.umap is not None:
        reducer = Umap(signatures, options.umap, seed=options.seed)
    elif options.predictor == "gp":
        reducer = Principal.whole(signatures)
    else:
        reducer = Principal.fit(signatures, options.pca)
    predictor = fit_predictor(
        options.predictor,
        reducer(signatures),
        references.performance,
        seed=options.seed,
        options=options.predictor_options,
    )
    return reducer, predictor
