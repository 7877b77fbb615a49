"""``gp-eval compare``: which of the models under evaluation is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gp_eval.cli.output import note, print_json, print_table
from gp_eval.cli.standing import note_untrained
from gp_eval.comparison import Comparison, Difference, compare, independent_variance
from gp_eval.data.validation import some
from gp_eval.errors import DataError, GpEvalError, StateMismatchError
from gp_eval.report.comparison import plot_comparison
from gp_eval.report.curves import check_picture
from gp_eval.result import Result
from gp_eval.session import Session, open_session

__all__ = ["compare_runs"]

_MOST = 6
"""Models up to which the table of pairs is printed."""
_NAMED = 2
"""Names in a cell of the table."""


@dataclass(frozen=True)
class _Belief:
    """What one session knows: ``T`` results, their means and joint covariance."""

    run: Path
    fingerprint: str
    items: list[str]
    results: list[Result]
    mean: Tensor
    covariance: Tensor


def compare_runs(
    runs: Sequence[Path], *, level: float, as_json: bool, output: Path | None
) -> None:
    """Print a ranking and the pairs of all targets of the runs, and draw them.

    Targets of one run are compared by their joint belief, those of different runs as
    independent.

    Raises:
        StateMismatchError: For runs on different references or items.
        DataError: For a target that is in two runs.
        GpEvalError: For a model of several targets without a joint belief.
    """
    if output is not None:
        check_picture(output)
    beliefs = [_read(run) for run in runs]
    _check_same_references(beliefs)
    _check_unique_targets(beliefs)
    results = [result for belief in beliefs for result in belief.results]
    comparison = compare(
        [result.target for result in results],
        torch.cat([belief.mean for belief in beliefs]),
        torch.block_diag(*(belief.covariance for belief in beliefs)),
        level=level,
    )
    by_name = {result.target: result for result in results}
    if as_json:
        _print_records(comparison, by_name)
    else:
        _print_ranking(comparison, by_name)
        _print_pairs(comparison)
    for line in _notes(beliefs, level):
        note(line)
    if output is not None:
        note(f"Picture: {plot_comparison(comparison, output)}")


def _read(run: Path) -> _Belief:
    """The belief of a session of one or of several targets."""
    with open_session(run, read_only=True) as session:
        note_untrained(session)
        config, results = session.config, session.estimates()
        if isinstance(session, Session):
            mean = torch.tensor([results[0].mean], dtype=torch.float64)
            covariance = torch.tensor(
                [[independent_variance(results[0])]], dtype=torch.float64
            )
        else:
            belief = session.performance()
            joint = belief.normal_covariance()
            if joint is None:
                raise GpEvalError(
                    f"{str(run)!r}: the model {config.model!r} gives no covariance of "
                    "its targets, which a comparison needs"
                )
            mean, covariance = belief.mean.cpu(), joint.cpu()
    return _Belief(run, config.references, config.items, results, mean, covariance)


def _check_same_references(beliefs: Sequence[_Belief]) -> None:
    first = beliefs[0]
    for other in beliefs[1:]:
        if (other.fingerprint, other.items) != (first.fingerprint, first.items):
            raise StateMismatchError(
                f"{str(first.run)!r} and {str(other.run)!r} are not on the same "
                "references and items: start the sessions from one table, with the "
                "same --exclude and --macro"
            )


def _check_unique_targets(beliefs: Sequence[_Belief]) -> None:
    where: dict[str, Path] = {}
    for belief in beliefs:
        for result in belief.results:
            if result.target in where:
                raise DataError(
                    f"target: {result.target!r} is in {str(where[result.target])!r} "
                    f"and in {str(belief.run)!r}; compare each target once"
                )
            where[result.target] = belief.run


def _print_records(comparison: Comparison, results: dict[str, Result]) -> None:
    for ranked in comparison.ranking:
        result = results[ranked.name]
        print_json(
            {
                "target": ranked.name,
                "estimate": ranked.mean,
                "low": ranked.low,
                "high": ranked.high,
                "n": result.n,
                "N": result.N,
                "rank_best": ranked.best,
                "rank_worst": ranked.worst,
                "tied_with": list(ranked.tied_with),
            }
        )
    for pair in comparison.pairs:
        print_json(_pair_record(pair))


def _pair_record(pair: Difference) -> dict[str, Any]:
    return {
        "a": pair.a,
        "b": pair.b,
        "difference": pair.difference,
        "low": pair.low,
        "high": pair.high,
        "probability_a_better": pair.probability,
    }


def _print_ranking(comparison: Comparison, results: dict[str, Result]) -> None:
    rows = [
        [
            ranked.name,
            ranked.ranks,
            f"{ranked.mean:.4f}",
            f"[{ranked.low:.4f}, {ranked.high:.4f}]",
            f"{results[ranked.name].n} of {results[ranked.name].N}",
            _named(ranked.tied_with),
        ]
        for ranked in comparison.ranking
    ]
    interval = f"{comparison.level * 100:g} % interval"
    print_table(["target", "rank", "estimate", interval, "n", "tied with"], rows)


def _named(names: Sequence[str]) -> str:
    """A few names, and how many there are beyond them."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (", ".join(names[:_NAMED]) or "-") + more


def _print_pairs(comparison: Comparison) -> None:
    if len(comparison.ranking) > _MOST:
        note(f"{len(comparison.pairs)} pairs: --json prints them, -o draws them.")
    elif comparison.pairs:
        print()
        rows = [
            [
                f"{pair.a} - {pair.b}",
                f"{pair.difference:+.4f}",
                f"[{pair.low:+.4f}, {pair.high:+.4f}]",
                _probability(pair.probability),
                "yes" if pair.tied else "no",
            ]
            for pair in comparison.pairs
        ]
        interval = f"{comparison.level * 100:g} % interval"
        print_table(["pair", "difference", interval, "P(first better)", "tied"], rows)


def _probability(value: float) -> str:
    """Three digits that never round to certainty; the first is never the worse one."""
    return ">0.999" if 0.9995 <= value < 1.0 else f"{value:.3f}"


def _notes(beliefs: Sequence[_Belief], level: float) -> list[str]:
    """What the numbers rest on."""
    joint = [str(belief.run) for belief in beliefs if len(belief.results) > 1]
    lines = []
    if joint:
        lines.append(f"Joint belief of the targets of {some(joint)}.")
    if len(beliefs) > 1:
        lines.append(
            "Targets of different runs are taken as independent: conservative if their "
            "errors are positively correlated, as they mostly are on one set of "
            "references."
        )
    lines.append(
        f"Higher is better. Intervals are model-based, {level * 100:g} % for each "
        "pair by itself; models are tied if that of their difference includes 0."
    )
    return lines
