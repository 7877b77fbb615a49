"""Computes the content of a report from a session, once for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gp_eval.comparison import compare
from gp_eval.data import Groups, References
from gp_eval.models import SupportsRefit
from gp_eval.report.content import (
    Curves,
    Pair,
    Provenance,
    RankedTarget,
    Ranking,
    ReferenceScore,
    Report,
    SkippedItem,
    StopSettings,
    TargetReport,
)
from gp_eval.report.group_content import GroupSection
from gp_eval.report.groups import group_sections
from gp_eval.report.items import ItemBelief, largest
from gp_eval.report.outcome import cost_sentence, decision_sentence
from gp_eval.report.sentences import covers, kind, stop_sentence, warnings
from gp_eval.result import Result
from gp_eval.session import MultiTargetSession, Session
from gp_eval.session.journal import now
from gp_eval.stopping import StoppingRule

__all__ = ["build_report"]

_JOINT = (
    "From the joint belief of the targets. Each 95 % interval holds for its pair "
    "alone; two targets are tied if the interval of their difference includes 0. "
    "Higher is better."
)


def build_report(
    session: Session | MultiTargetSession, *, groups: Groups | None = None
) -> Report:
    """Everything a report says about a session; the session is only looked at.

    A session that is open read-only, or still running, is reported as it stands.

    Args:
        session: The session.
        groups: Groups of items to give scores of; default those of the references, as
            far as there are any and the model can tell.

    Raises:
        DataError: For groups of another benchmark.
        ValueError: For groups with a model that has no joint belief about items.

    Example:
        >>> with open_session("run/", read_only=True) as session:
        ...     write_report(build_report(session), "report.html")
    """
    references, results = session.references, session.estimates()
    sections = group_sections(session, results, groups)
    belief = ItemBelief.read(session.model, references, len(results), groups=groups)
    scores = _reference_scores(references)
    return Report(
        targets=[
            _target(session, belief, scores, section, target=t, result=result)
            for t, (result, section) in enumerate(zip(results, sections, strict=True))
        ],
        comparison=_compare(session),
        references=scores,
        provenance=_provenance(session, results),
    )


def _target(
    session: Session | MultiTargetSession,
    belief: ItemBelief,
    references: Sequence[ReferenceScore],
    section: GroupSection,
    *,
    target: int,
    result: Result,
) -> TargetReport:
    told = session.scores_of(result.target)
    evaluated, surprises_note = belief.evaluated(target, told)
    surprises, rms = largest(evaluated)
    known = [r.score for r in references if r.score is not None]
    skipped = _skipped(session, result.target)
    return TargetReport(
        target=result.target,
        estimate=result.mean,
        low=result.low,
        high=result.high,
        width=result.width,
        kind=kind(result),
        covers=covers(result, session.references),
        n=result.n,
        N=result.N,
        done=result.stop_reason is not None,
        stop_reason=result.stop_reason,
        stopped_at=result.stopped_at,
        stop=stop_sentence(result, session.config.stop),
        verdict=result.verdict,
        probability=result.probability,
        decision=decision_sentence(result, session.config.stop),
        cost=result.cost,
        spending=cost_sentence(
            result,
            session.config.stop,
            session.costs if isinstance(session, Session) else None,
        ),
        rank=1 + sum(score > result.mean for score in known),
        rank_best=1 + sum(score > result.high for score in known),
        rank_worst=1 + sum(score > result.low for score in known),
        warnings=warnings(
            result, known, stop=session.config.stop, n_skipped=len(skipped)
        ),
        curves=Curves(estimates=result.estimates, widths=result.widths),
        group_by=section.group_by,
        groups=section.groups,
        ungrouped=section.ungrouped,
        macro=section.macro,
        micro=section.micro,
        stops_on=section.stops_on,
        groups_note=section.groups_note,
        surprises=surprises,
        surprises_note=surprises_note,
        surprise_rms=rms,
        evaluated=evaluated,
        pending=_pending(session, result.target),
        skipped=skipped,
    )


def _pending(session: Session | MultiTargetSession, target: str) -> list[str]:
    if isinstance(session, Session):
        return session.pending
    return [item for of, item in session.pending if of == target]


def _skipped(session: Session | MultiTargetSession, target: str) -> list[SkippedItem]:
    if isinstance(session, Session):
        reasons = session.skipped
    else:
        reasons = {i: why for (of, i), why in session.skipped.items() if of == target}
    return [SkippedItem(item=item, reason=why) for item, why in reasons.items()]


def _reference_scores(references: References) -> list[ReferenceScore]:
    """The reference models, the best first; those that lack items come last."""
    entries = [
        ReferenceScore(model=model, score=None if score != score else score)
        for model, score in zip(
            references.models, references.performance.tolist(), strict=True
        )
    ]
    return sorted(
        entries, key=lambda entry: float("inf") if entry.score is None else -entry.score
    )


def _compare(session: Session | MultiTargetSession) -> Ranking:
    if isinstance(session, Session) or len(session.targets) < 2:
        return Ranking(ranking=[], pairs=[], note="There is one target.")
    belief = session.performance()
    covariance = belief.normal_covariance()
    if covariance is None:
        note = "Not available for this model: it has no joint belief about targets."
        return Ranking(ranking=[], pairs=[], note=note)
    made = compare(session.targets, belief.mean.cpu(), covariance.cpu())
    return Ranking(
        ranking=[
            RankedTarget(
                target=ranked.name,
                estimate=ranked.mean,
                low=ranked.low,
                high=ranked.high,
                rank_best=ranked.best,
                rank_worst=ranked.worst,
                tied_with=list(ranked.tied_with),
            )
            for ranked in made.ranking
        ],
        pairs=[
            Pair(
                a=pair.a,
                b=pair.b,
                difference=pair.difference,
                low=pair.low,
                high=pair.high,
                probability_a_better=pair.probability,
                tied=pair.tied,
            )
            for pair in made.pairs
        ],
        note=_JOINT,
    )


def _stop_settings(stop: StoppingRule) -> StopSettings:
    return StopSettings(
        width=stop.width,
        stable=stop.stable,
        window=stop.window,
        max_items=stop.max_items,
        max_cost=stop.max_cost,
        until=None if stop.until is None else stop.until.statement,
        level=None if stop.until is None else stop.until.level,
    )


def _provenance(
    session: Session | MultiTargetSession, results: Sequence[Result]
) -> Provenance:
    config, references = session.config, session.references
    kernel = getattr(config, "covar_module", None)
    updates: Mapping[int, Any] = (
        session.model.updates if isinstance(session.model, SupportsRefit) else {}
    )
    last = max(updates, default=None)
    return Provenance(
        model=config.model,
        model_options=config.model_options,
        kernel=None if kernel is None else kernel.description,
        hyperparameters=None if last is None else updates[last],
        hyperparameters_at=last,
        stop=_stop_settings(config.stop),
        seed=config.seed,
        n_items=len(references.items),
        n_references=len(references.models),
        n_evaluated=sum(result.n for result in results),
        weighted=references.is_weighted,
        fingerprint=config.references,
        meta=references.meta,
        created=config.created,
        last_event=session.last_event,
        versions=config.versions,
        reported=now(),
        reported_with=config.present_versions(),
    )
