"""``gp-eval disco fit | select | predict``: choose once, evaluate few, predict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gp_eval.cli.load import load_scores
from gp_eval.cli.output import note, print_json, print_table
from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.disco import (
    DiscoOptions,
    DiscoPlan,
    item_order,
    probabilities_from_log_likelihoods,
    read_responses,
    reference_disagreement,
)
from gp_eval.disco.cross_validation import out_of_fold_errors
from gp_eval.errors import DataError

__all__ = [
    "disco_options",
    "fit_plan",
    "load_disco",
    "predict_scores",
    "print_choice",
    "print_plan",
]


def disco_options(
    *,
    k: int,
    choice: str,
    guiding: int | None,
    stratify: bool,
    temperature: bool,
    seed: int,
    signature: str = "auto",
    pca: int | None = 256,
    umap: int | None = None,
    predictor: str = "gp",
    predictor_options: Sequence[str] = (),
) -> DiscoOptions:
    """The options of the flags.

    Raises:
        ValueError: In one line, for values that the options refuse.
    """
    values = {
        "k": k,
        "choice": choice,
        "guiding": guiding,
        "stratify": stratify,
        "temperature": temperature,
        "signature": signature,
        "pca": pca,
        "umap": umap,
        "predictor": predictor,
        "predictor_options": _pairs(predictor_options),
        "seed": seed,
    }
    try:
        return DiscoOptions.model_validate(values)
    except ValidationError as error:
        raise ValueError("; ".join(_lines(error))) from error


def _lines(error: ValidationError) -> list[str]:
    """What is wrong with each field; our own complaints name theirs."""
    found = []
    for entry in error.errors():
        if entry["type"] == "value_error":
            found.append(str(entry["ctx"]["error"]))
        else:
            field = ".".join(str(part) for part in entry["loc"])
            found.append(f"{field}: {entry['msg']}, got {entry['input']!r}")
    return found


def _pairs(texts: Sequence[str]) -> dict[str, Any]:
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise ValueError(f"predictor-option: expected NAME=VALUE, got {text!r}")
        try:
            pairs[name] = json.loads(value)
        except json.JSONDecodeError:
            pairs[name] = value
    return pairs


def load_disco(
    source: str,
    *,
    score: str,
    missing: Missing,
    duplicate_models: DuplicateModels,
    macro: bool,
    log_likelihoods: bool,
) -> References:
    """References with probabilities in place of log-likelihoods, weighted as wanted."""
    _, table = load_scores(
        source, score=score, missing=missing, duplicate_models=duplicate_models
    )
    if log_likelihoods:
        if table.probabilities is None:
            raise DataError(f"log_likelihoods: {source!r} has no array probs")
        # The arrays are checked one by one, and of this one only the values change.
        table.probabilities = probabilities_from_log_likelihoods(table.probabilities)
    return table.macro() if macro else table


def fit_plan(
    references: References,
    options: DiscoOptions,
    *,
    output: Path,
    folds: int,
    force: bool,
    as_json: bool,
) -> None:
    """Fit, check on the references, save, and say what came out."""
    if (output / "plan.json").exists() and not force:
        raise ValueError(f"output: {str(output)!r} holds a plan; --force replaces it")
    plan = DiscoPlan.fit(references, options)
    mae = None
    if folds and len(references.models) > 2:
        errors = out_of_fold_errors(references, plan, folds=folds)
        mae = float(errors.abs().mean())
    plan.save(output)
    record = {
        "plan": str(output),
        "k": len(plan.items),
        "N": plan.n_items,
        "references": len(plan.models),
        "choice": options.choice,
        "signature": "scores" if plan.n_classes is None else "probabilities",
        "predictor": options.predictor,
        "out_of_fold_mae": mae,
    }
    if as_json:
        print_json(record)
        return
    shown = "-" if mae is None else f"{mae:.4f}"
    print_table(list(record), [[*(str(v) for v in list(record.values())[:-1]), shown]])
    note(f"The items to run: gp-eval disco select {output}")


def print_plan(folder: Path, *, as_json: bool) -> None:
    """The items of a plan, one a line."""
    for rank, item in enumerate(DiscoPlan.load(folder).items, start=1):
        if as_json:
            print_json({"item": item, "rank": rank})
        else:
            print(item)


def print_choice(
    references: References, options: DiscoOptions, *, as_json: bool
) -> None:
    """The items that a plan with these options would have, one a line."""
    if options.k > len(references.items):
        raise ValueError(
            f"k: expected at most the {len(references.items)} items, got {options.k}"
        )
    order = item_order(references, options)[: options.k].tolist()
    scores: list[float] | None = None
    if options.choice != "random" and options.choice != "given":
        found = reference_disagreement(references, options)
        scores = found.of(options.choice).tolist()
    for rank, place in enumerate(order, start=1):
        item = references.items[place]
        if not as_json:
            print(item)
            continue
        score = None if scores is None else scores[place]
        print_json({"item": item, "rank": rank, "score": score})


def predict_scores(
    folder: Path,
    responses: Path,
    *,
    level: float,
    log_likelihoods: bool,
    as_json: bool,
) -> None:
    """Predictions of all models in the file, in its order."""
    plan = DiscoPlan.load(folder)
    given = read_responses(responses, log_likelihoods=log_likelihoods)
    prediction = plan.predict(given)
    if prediction.n_ignored:
        note(
            f"{prediction.n_ignored} items are not among the {len(plan.items)} chosen "
            "ones and were ignored"
        )
    interval = prediction.interval(level)
    low, high = ([None] * len(given.models),) * 2
    if interval is not None:
        low, high = (end.tolist() for end in interval)
    rows = list(zip(given.models, prediction.mean.tolist(), low, high, strict=True))
    if as_json:
        for model, mean, *ends in rows:
            print_json(
                {
                    "model": model,
                    "prediction": mean,
                    "low": ends[0],
                    "high": ends[1],
                    "level": None if interval is None else level,
                }
            )
        return
    columns = ["model", "prediction"]
    if interval is not None:
        columns.append(f"{100 * level:g} % interval")
    print_table(
        columns,
        [
            [model, f"{mean:.4f}", *([f"[{a:.4f}, {b:.4f}]"] if interval else [])]
            for model, mean, a, b in rows
        ],
    )
    if interval is None:
        note(f"{plan.options.predictor} has no interval; --predictor gp has one")
