"""Flags that the commands of ``gp-eval disco`` share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from gp_eval.cli.options import option

__all__ = [
    "Choice",
    "ChoiceOption",
    "Draws",
    "Gap",
    "Guiding",
    "LogLikelihoods",
    "Macro",
    "Pca",
    "Predictor",
    "PredictorOption",
    "PredictorSettings",
    "Refs",
    "Signature",
    "Source",
    "SplitName",
    "Splits",
    "Stratify",
    "Targets",
    "Temperature",
    "Umap",
    "numbers",
    "words",
]


class Choice(StrEnum):
    """How items are chosen."""

    jsd = "jsd"
    pds = "pds"
    pds_per_class = "pds-per-class"
    random = "random"


class Predictor(StrEnum):
    """What predicts the score; ``mean`` is for random items only."""

    gp = "gp"
    ridge = "ridge"
    lasso = "lasso"
    knn = "knn"
    random_forest = "random-forest"
    boosting = "boosting"
    mean = "mean"


class Source(StrEnum):
    """What signatures are made of; ``auto`` is probabilities where there are some."""

    auto = "auto"
    probabilities = "probabilities"
    scores = "scores"


class SplitName(StrEnum):
    """Which models are held out: random ones, the newest, or the best."""

    uniform = "uniform"
    chronological = "chronological"
    performance_gap = "performance-gap"


Refs = Annotated[
    str, typer.Argument(help="Table of earlier models, or 'digits' for the embedded.")
]
ChoiceOption = Annotated[
    Choice,
    option("choice", "Items that models disagree on by JSD or PDS, or random ones."),
]
Guiding = Annotated[
    int | None,
    option(
        "guiding",
        "Models, drawn by the seed, whose disagreement counts. [default: all]",
    ),
]
Stratify = Annotated[bool, option("stratify", "Give every group of items its share.")]
Temperature = Annotated[
    bool, option("temperature", "Scale each model's probabilities to fit the labels.")
]
Macro = Annotated[bool, option("macro", "Let every group of items count the same.")]
LogLikelihoods = Annotated[
    bool,
    option(
        "log-likelihoods", "What the file has for probabilities are log-likelihoods."
    ),
]
Pca = Annotated[
    int, option("pca", "Principal components, 0 for none; the GP takes none.", min=0)
]
Signature = Annotated[
    Source,
    option(
        "signature",
        "Responses that predict; scores where later models have no probabilities.",
    ),
]
Umap = Annotated[
    int | None,
    option("umap", "UMAP components in place of PCA; needs umap-learn.", min=1),
]
PredictorOption = Annotated[
    Predictor, option("predictor", "What predicts the score from the responses.")
]
PredictorSettings = Annotated[
    list[str] | None,
    option(
        "predictor-option",
        "NAME=VALUE of a predictor, such as alpha=1; may be repeated.",
    ),
]
Splits = Annotated[int, option("splits", "Splits into references and targets.", min=1)]
Draws = Annotated[
    int, option("draws", "Draws of guiding models, random items and trees.", min=1)
]
Targets = Annotated[
    int | None,
    option("targets", "Held-out models. [default: a tenth, at least 5]", min=2),
]
Gap = Annotated[
    float,
    option("gap", "Share of all models left out between targets and references."),
]


def words(flag: str, text: str, known: type[StrEnum]) -> list[str]:
    """Names separated by commas, each a value of ``known``."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    values = [member.value for member in known]
    unknown = [word for word in found if word not in values]
    if unknown or not found:
        raise typer.BadParameter(
            f"--{flag}: expected some of {', '.join(values)}, got {text!r}"
        )
    return list(dict.fromkeys(found))


def numbers(flag: str, text: str) -> list[int]:
    """Whole numbers >= 1 separated by commas."""
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise typer.BadParameter(f"{flag}: expected numbers like 10,30, got {text!r}")
    return list(dict.fromkeys(found))
