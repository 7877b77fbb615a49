"""``gp-eval tell``: scores given as words, in a plain file or in a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gp_eval.cli.output import note, training_progress
from gp_eval.cli.scores import for_targets, parse_pairs, read_scores
from gp_eval.cli.standing import note_untrained
from gp_eval.readers import Told, is_log, read_told
from gp_eval.readers.policies import OnError
from gp_eval.session import MultiTargetSession, Session, open_session

__all__ = ["tell_scores"]


def tell_scores(
    run: Path,
    words: Sequence[str],
    source: str | None,
    *,
    target: str | None,
    metric: str | None,
    filter: str | None,
    log_model: str | None,
    on_error: OnError,
) -> None:
    """Record scores of one target, or of those that a plain file names.

    Args:
        run: Folder of the session.
        words: ``ITEM=SCORE``.
        source: The file or log in place of words.
        target: Whose scores they are, where nothing names it.
        metric: Metric in a log; default that of the references.
        filter: Filter in a log; default that of the references.
        log_model: The model, where a log holds several.
        on_error: What to do with failed items of a log.
    """
    log = _log(source)
    given = None
    if log is None:  # a plain file is read before the session is opened
        given = parse_pairs(words) if source is None else read_scores(source)
    with (
        training_progress() as progress,
        open_session(run, progress=progress) as session,
    ):
        if log is not None:
            told = read_told(
                log,
                items=session.references.items,
                meta=session.references.meta,
                metric=metric,
                filter=filter,
                model=log_model,
                on_error=on_error,
            )
            _note_counts(told)
            given = {(None, item): score for item, score in told.scores.items()}
        scores = for_targets(given or {}, session.targets, target)
        _tell(session, scores)
        note_untrained(session)
        results = session.estimates()
    named = {name for name, _ in scores}
    note(f"{len(scores)} told")
    for result in results:
        if result.target in named:
            note(
                f"{result.target}: n = {result.n} of {result.N}, estimate "
                f"{result.mean:.4f} [{result.low:.4f}, {result.high:.4f}]"
                + (f", stopped: {result.stop_reason}" if result.stop_reason else "")
            )


def _log(source: str | None) -> Path | None:
    """The log, unless the scores are in words, in a plain file or on stdin."""
    if source is None or source == "-":
        return None
    path = Path(source)
    return path if path.is_dir() or is_log(path) else None


def _tell(
    session: Session | MultiTargetSession, scores: Mapping[tuple[str, str], float]
) -> None:
    if isinstance(session, MultiTargetSession):
        session.tell_all(scores)
    else:
        session.tell_all({item: score for (_, item), score in scores.items()})


def _note_counts(told: Told) -> None:
    """What was done to the scores of a log, and what looks odd about them."""
    for name, count in told.counts.items():
        if isinstance(count, int) and count and name != "records":
            note(f"{name.replace('_', ' ')}: {count}")
    if told.is_prefix:
        note(
            "warning: these are the first items of the benchmark, not a random sample; "
            "if items are sorted, the estimate will lean"
        )
