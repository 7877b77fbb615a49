"""Flags of ``gp-eval disco experiment | factors | calibration | cost``."""

from __future__ import annotations

from typing import Annotated

import typer

from gp_eval.cli.disco_options import (
    Choice,
    ChoiceOption,
    Draws,
    Gap,
    Guiding,
    LogLikelihoods,
    Macro,
    Pca,
    Predictor,
    PredictorOption,
    PredictorSettings,
    Refs,
    Signature,
    Source,
    SplitName,
    Splits,
    Stratify,
    Targets,
    Temperature,
    numbers,
    words,
)
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

__all__ = ["calibration", "cost", "experiment", "factors"]

ScoreOption = Annotated[Score, option("score", "Scores of digits.")]
OneSplit = Annotated[SplitName, option("split", "Which models are held out.")]
K = Annotated[int, option("k", "Items to choose.", "-k", min=1)]


def experiment(
    refs: Refs,
    k: Annotated[str, option("k", "Numbers of items, by commas.", "-k")] = (
        "10,30,60,100"
    ),
    split: Annotated[
        str,
        option(
            "split",
            "uniform, chronological (the last models of the table are the newest), "
            "performance-gap, by commas.",
        ),
    ] = "uniform",
    choice: Annotated[
        str, option("choice", "jsd, pds, pds-per-class, random, by commas.")
    ] = "random,jsd",
    predictor: Annotated[
        str, option("predictor", "Predictors, by commas; mean for random items.")
    ] = "mean,ridge,gp",
    guiding: Guiding = None,
    stratify: Stratify = False,
    temperature: Temperature = False,
    signature: Signature = Source.auto,
    pca: Pca = 256,
    splits: Splits = 20,
    draws: Draws = 1,
    targets: Targets = None,
    gap: Gap = 0.2,
    macro: Macro = False,
    log_likelihoods: LogLikelihoods = False,
    score: ScoreOption = Score.probability,
    seed: Seed = 0,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """MAE and Spearman on held-out models: choices, predictors and numbers of items."""
    budgets = numbers("-k", k)
    named = words("split", split, SplitName)
    choices = words("choice", choice, Choice)
    predictors = words("predictor", predictor, Predictor)
    from gp_eval.cli.disco import disco_options, load_disco
    from gp_eval.cli.disco_experiments import run_experiment, tracked

    base = disco_options(
        k=budgets[0],
        choice="jsd",
        guiding=guiding,
        stratify=stratify,
        temperature=temperature,
        signature=signature.value,
        pca=pca or None,
        seed=seed,
    )
    references = load_disco(
        refs,
        score=score.value,
        missing=_real(missing).value,
        duplicate_models=duplicate_models.value,
        macro=macro,
        log_likelihoods=log_likelihoods,
    )
    run_experiment(
        tracked(references, named, n_splits=splits, n_targets=targets, gap=gap),
        base,
        budgets=budgets,
        choices=choices,
        predictors=predictors,
        n_draws=draws,
        as_json=json,
    )


def factors(
    refs: Refs,
    k: K = 100,
    split: OneSplit = SplitName.uniform,
    choice: ChoiceOption = Choice.jsd,
    guiding: Guiding = None,
    stratify: Stratify = False,
    temperature: Temperature = False,
    signature: Signature = Source.auto,
    pca: Pca = 256,
    predictor: PredictorOption = Predictor.ridge,
    predictor_option: PredictorSettings = None,
    splits: Splits = 10,
    draws: Draws = 5,
    targets: Targets = None,
    gap: Gap = 0.2,
    macro: Macro = False,
    log_likelihoods: LogLikelihoods = False,
    score: ScoreOption = Score.probability,
    seed: Seed = 0,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """One factor at a time: guiding models, strata, PCA, predictor, references."""
    from gp_eval.cli.disco import disco_options, load_disco
    from gp_eval.cli.disco_experiments import run_factors, tracked

    base = disco_options(
        k=k,
        choice=choice.value,
        guiding=guiding,
        stratify=stratify,
        temperature=temperature,
        signature=signature.value,
        pca=pca or None,
        predictor=predictor.value,
        predictor_options=predictor_option or [],
        seed=seed,
    )
    references = load_disco(
        refs,
        score=score.value,
        missing=_real(missing).value,
        duplicate_models=duplicate_models.value,
        macro=macro,
        log_likelihoods=log_likelihoods,
    )
    run_factors(
        tracked(references, [split.value], n_splits=splits, n_targets=targets, gap=gap),
        base,
        n_draws=draws,
        as_json=json,
    )


def calibration(
    refs: Refs,
    k: K = 100,
    choice: ChoiceOption = Choice.jsd,
    guiding: Guiding = None,
    temperature: Temperature = False,
    signature: Signature = Source.auto,
    pca: Pca = 256,
    predictor: PredictorOption = Predictor.gp,
    predictor_option: PredictorSettings = None,
    splits: Splits = 20,
    draws: Draws = 1,
    targets: Targets = None,
    log_likelihoods: LogLikelihoods = False,
    score: ScoreOption = Score.binary,
    seed: Seed = 0,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """Does the error go with calibration error and mean confidence of a model?"""
    from gp_eval.cli.disco import disco_options, load_disco
    from gp_eval.cli.disco_experiments import run_calibration, tracked

    base = disco_options(
        k=k,
        choice=choice.value,
        guiding=guiding,
        stratify=False,
        temperature=temperature,
        signature=signature.value,
        pca=pca or None,
        predictor=predictor.value,
        predictor_options=predictor_option or [],
        seed=seed,
    )
    references = load_disco(
        refs,
        score=score.value,
        missing=_real(missing).value,
        duplicate_models=duplicate_models.value,
        macro=False,
        log_likelihoods=log_likelihoods,
    )
    run_calibration(
        tracked(references, ["uniform"], n_splits=splits, n_targets=targets, gap=0.0),
        references,
        base,
        n_draws=draws,
        as_json=json,
    )


def cost(
    full: Annotated[
        float, typer.Option("--full", help="Cost of one model on all items.")
    ],
    references: Annotated[
        int | None,
        typer.Option("--references", help="Models to run on all items first.", min=1),
    ] = None,
    offline: Annotated[
        float | None,
        typer.Option(help="... or what that costs; 0 if their responses are there."),
    ] = None,
    fit_cost: Annotated[
        float, typer.Option("--fit", help="Cost of choosing and fitting, on top.")
    ] = 0.0,
    online: Annotated[
        float | None,
        typer.Option(help="Cost of one model on the chosen items."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", help="... or their number", min=1)
    ] = None,
    items: Annotated[
        int | None, typer.Option("--items", help="... of so many.", min=1)
    ] = None,
    later: Annotated[
        int | None, typer.Option(help="Later models that are planned.", min=0)
    ] = None,
    json: Json = False,
) -> None:
    """From how many later models on a plan pays, in any unit of cost."""
    if (references is None) == (offline is None):
        raise typer.BadParameter("give either --references or --offline")
    if online is None and (k is None or items is None):
        raise typer.BadParameter("give either --online or both -k and --items")
    if online is not None and (k is not None or items is not None):
        raise typer.BadParameter("give either --online or -k and --items, not both")
    if k is not None and items is not None and k > items:
        raise typer.BadParameter(f"-k: expected at most the {items} items, got {k}")
    from gp_eval.cli.disco_experiments import print_costs
    from gp_eval.experiments.disco.costs import Costs

    once = (references or 0) * full if offline is None else offline
    each = full * (k or 0) / (items or 1) if online is None else online
    costs = Costs(full=full, online=each, offline=once + fit_cost)
    print_costs(costs, later=later, as_json=json)


def _real(missing: Missing) -> Missing:
    if missing is Missing.mean:
        raise typer.BadParameter("--missing mean would invent the targets' scores")
    return missing
