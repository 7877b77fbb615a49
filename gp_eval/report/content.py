"""What a report says, whatever it is written as; the JSON form is this and no more."""

from __future__ import annotations

from typing import Any, Literal

from gp_eval.models.protocol import Hyperparameters
from gp_eval.report.group_content import Content, GroupScore, GroupSection, MeanScore
from gp_eval.result import StopReason

__all__ = [
    "Curves",
    "EvaluatedItem",
    "GroupScore",
    "GroupSection",
    "MeanScore",
    "Pair",
    "Provenance",
    "RankedTarget",
    "Ranking",
    "ReferenceScore",
    "Report",
    "SkippedItem",
    "Standing",
    "StopSettings",
    "TargetReport",
]


class Curves(Content):
    """Estimate and interval after each evaluated item, place ``k`` after ``k + 1``.

    Attributes:
        estimates: Estimates, in score units.
        widths: Full widths of the 95 % interval around them.
    """

    estimates: list[float]
    widths: list[float]


class EvaluatedItem(Content):
    """One evaluated item.

    Attributes:
        item: Its id.
        group: Its group, if the benchmark has groups.
        score: What the target scored.
        references_mean: Mean score of the reference models on it.
        predicted: What the model predicts from all other evaluated items, with the
            hyperparameters of the report; ``None`` if the model cannot say.
        predicted_std: Standard deviation of that prediction.
        surprise: ``(score - predicted) / predicted_std``.
    """

    item: str
    group: str | None
    score: float
    references_mean: float
    predicted: float | None
    predicted_std: float | None
    surprise: float | None


class SkippedItem(Content):
    """An item that could not be evaluated and counts as unobserved.

    Attributes:
        item: Its id.
        reason: Why, as the evaluator put it.
    """

    item: str
    reason: str


class Standing(Content):
    """Where one target stands.

    Attributes:
        target: Its name.
        estimate: Estimate of its full-benchmark score.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        width: Full width of the interval.
        kind: What kind of interval it is.
        covers: What the interval covers, in one sentence.
        n: Evaluated items.
        N: Items of the benchmark.
        done: Whether the run has stopped.
        stop_reason: Why, see :class:`~gp_eval.Result`, or ``None``.
        stopped_at: ``n`` at which it stopped; later scores count as well.
        stop: The state of the run in one sentence.
        verdict: Whether the statement of the rule holds; ``None`` if undecided.
        probability: Its posterior probability; ``None`` if unknown.
        decision: That in a sentence; ``None`` without a statement.
        cost: What was spent, in the unit of the costs; ``None`` without costs.
        spending: That in a sentence.
        rank: Place among the references, ``1 +`` how many are better than the estimate.
        rank_best: The same for the upper end of the interval.
        rank_worst: The same for the lower end.
        warnings: What a reader has to know before the number is used.
        curves: Estimate and interval against ``n``.
    """

    target: str
    estimate: float
    low: float
    high: float
    width: float
    kind: str
    covers: str
    n: int
    N: int
    done: bool
    stop_reason: StopReason | None
    stopped_at: int | None
    stop: str
    verdict: bool | None
    probability: float | None
    decision: str | None
    cost: float | None
    spending: str | None
    rank: int
    rank_best: int
    rank_worst: int
    warnings: list[str]
    curves: Curves


class TargetReport(GroupSection, Standing):
    """What is known about one target.

    Attributes:
        surprises: The evaluated items of largest absolute surprise, the largest first.
        surprises_note: What surprise means here, or why there is none.
        surprise_rms: Root mean square of all surprises, about 1 for a model whose
            spread is right.
        evaluated: All evaluated items, in the order of evaluation.
        pending: Items asked for and not told.
        skipped: Items that could not be evaluated.
    """

    surprises: list[EvaluatedItem]
    surprises_note: str
    surprise_rms: float | None
    evaluated: list[EvaluatedItem]
    pending: list[str]
    skipped: list[SkippedItem]


class ReferenceScore(Content):
    """A reference model.

    Attributes:
        model: Its id.
        score: Its full-benchmark score; ``None`` if it lacks items.
    """

    model: str
    score: float | None


class RankedTarget(Content):
    """A target's place among the targets; see :class:`~gp_eval.comparison.Ranked`."""

    target: str
    estimate: float
    low: float
    high: float
    rank_best: int
    rank_worst: int
    tied_with: list[str]


class Pair(Content):
    """Two targets; see :class:`~gp_eval.comparison.Difference`."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    probability_a_better: float
    tied: bool


class Ranking(Content):
    """The targets of one session compared by their joint belief.

    Attributes:
        ranking: The targets by estimate, the highest first; empty if there is only one
            target or the model has no joint belief.
        pairs: All differences.
        note: What the ranking rests on, or why there is none.
    """

    ranking: list[RankedTarget]
    pairs: list[Pair]
    note: str


class StopSettings(Content):
    """The stopping rule, with the statement and level of its decision.

    See :class:`~gp_eval.StoppingRule` and :class:`~gp_eval.Decision`.
    """

    width: float | None
    stable: float
    window: int
    max_items: int | None
    max_cost: float | None
    until: str | None
    level: float | None


class Provenance(Content):
    """Where the numbers come from.

    Attributes:
        model: Registered name of the model.
        model_options: Options it was given.
        kernel: The kernel passed in by the user, as it prints.
        hyperparameters: The last ones fitted, raw parameters by name.
        hyperparameters_at: Number of evaluations, over all targets, they were fitted
            after.
        stop: The stopping rule.
        seed: Seed of every random choice.
        n_items: ``N``.
        n_references: ``K``.
        n_evaluated: Evaluations, over all targets.
        weighted: Whether items have different weights.
        fingerprint: SHA-256 of the references: ids, scores, weights.
        meta: What the table of references says about itself.
        created: When the session was created, UTC.
        last_event: When it was last asked or told something, UTC.
        versions: Packages at the creation of the session.
        reported: When the report was made, UTC.
        reported_with: The same packages at that time.
    """

    model: str
    model_options: dict[str, Any]
    kernel: str | None
    hyperparameters: Hyperparameters | None
    hyperparameters_at: int | None
    stop: StopSettings
    seed: int
    n_items: int
    n_references: int
    n_evaluated: int
    weighted: bool
    fingerprint: str
    meta: dict[str, Any]
    created: str
    last_event: str | None
    versions: dict[str, str]
    reported: str
    reported_with: dict[str, str]


class Report(Content):
    """One session, of one target or of several.

    Attributes:
        format: Version of these keys.
        level: Probability of every interval.
        targets: One entry a target, in the order of the session.
        comparison: The targets beside each other.
        references: The reference models by score, the highest first.
        provenance: Where the numbers come from.
    """

    format: Literal[1] = 1
    level: float = 0.95
    targets: list[TargetReport]
    comparison: Ranking
    references: list[ReferenceScore]
    provenance: Provenance
