"""Flags of ``gp-eval disco fit | select | predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.disco_options import (
    Choice,
    ChoiceOption,
    Guiding,
    LogLikelihoods,
    Macro,
    Pca,
    Predictor,
    PredictorOption,
    PredictorSettings,
    Signature,
    Source,
    Stratify,
    Temperature,
    Umap,
)
from gp_eval.cli.disco_options import Refs as RefsArgument
from gp_eval.cli.options import (
    DuplicateModels,
    DuplicatesOption,
    Json,
    Missing,
    MissingOption,
    Score,
    Seed,
    option,
)

__all__ = ["fit", "predict", "select"]

ScoreOption = Annotated[Score, option("score", "Scores of digits.")]


def fit(
    refs: RefsArgument,
    output: Annotated[
        Path, option("output", "Folder of the plan.", "--output", "-o")
    ] = Path("plan"),
    k: Annotated[int, option("k", "Items to choose.", "-k", min=1)] = 100,
    choice: ChoiceOption = Choice.jsd,
    guiding: Guiding = None,
    stratify: Stratify = False,
    temperature: Temperature = False,
    signature: Signature = Source.auto,
    pca: Pca = 256,
    umap: Umap = None,
    predictor: PredictorOption = Predictor.gp,
    predictor_option: PredictorSettings = None,
    macro: Macro = False,
    log_likelihoods: LogLikelihoods = False,
    score: ScoreOption = Score.probability,
    seed: Seed = 0,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    folds: Annotated[
        int, option("folds", "Folds of the check on the references, 0 for none.", min=0)
    ] = 5,
    force: Annotated[bool, typer.Option("--force", help="Replace a plan.")] = False,
    json: Json = False,
) -> None:
    """Choose items and fit the predictor of the full score, once."""
    from gp_eval.cli.disco import disco_options, fit_plan, load_disco

    options = disco_options(
        k=k,
        choice=choice.value,
        guiding=guiding,
        stratify=stratify,
        temperature=temperature,
        signature=signature.value,
        pca=pca or None,
        umap=umap,
        predictor=predictor.value,
        predictor_options=predictor_option or [],
        seed=seed,
    )
    references = load_disco(
        refs,
        score=score.value,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
        macro=macro,
        log_likelihoods=log_likelihoods,
    )
    fit_plan(references, options, output=output, folds=folds, force=force, as_json=json)


def select(
    source: Annotated[
        str, typer.Argument(help="Folder of a plan, a table of references, or digits.")
    ],
    k: Annotated[
        int | None, option("k", "Items to choose from references. [100]", "-k", min=1)
    ] = None,
    choice: ChoiceOption = Choice.jsd,
    guiding: Guiding = None,
    stratify: Stratify = False,
    temperature: Temperature = False,
    log_likelihoods: LogLikelihoods = False,
    score: ScoreOption = Score.probability,
    seed: Seed = 0,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """Print the ids of the chosen items, most disagreed on first."""
    from gp_eval.cli.disco import disco_options, load_disco, print_choice, print_plan

    if Path(source).is_dir():
        if k is not None:
            raise typer.BadParameter("-k: a plan has its own number of items")
        print_plan(Path(source), as_json=json)
        return
    options = disco_options(
        k=k or 100,
        choice=choice.value,
        guiding=guiding,
        stratify=stratify,
        temperature=temperature,
        seed=seed,
    )
    references = load_disco(
        source,
        score=score.value,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
        macro=False,
        log_likelihoods=log_likelihoods,
    )
    print_choice(references, options, as_json=json)


def predict(
    plan: Annotated[Path, typer.Argument(help="Folder of the plan.")],
    responses: Annotated[
        Path,
        typer.Argument(
            help="Responses of later models: wide scores, or a long table with the "
            "columns item, model and score or p0, p1 ... (.parquet, .csv); or .npz."
        ),
    ],
    level: Annotated[float, option("level", "Probability of the intervals.")] = 0.95,
    log_likelihoods: LogLikelihoods = False,
    json: Json = False,
) -> None:
    """Predict full scores from responses to the chosen items."""
    from gp_eval.cli.disco import predict_scores

    if not 0.0 < level < 1.0:
        raise typer.BadParameter(f"--level: expected 0 < level < 1, got {level}")
    predict_scores(
        plan, responses, level=level, log_likelihoods=log_likelihoods, as_json=json
    )
