"""How often the off-range alarm is raised, and what the fall back changes.

    OMP_NUM_THREADS=1 python benchmarks/off_range.py --seeds 6
    OMP_NUM_THREADS=1 python benchmarks/off_range.py --runs --sets benchpred_rte

Without ``--runs`` no model is run: targets are looked at on random items, as far as 400
of them, and a JSON line a set and regime says how many raise an alarm in a whole run.
In interpolation targets are like the references and alarms are false.

With ``--runs`` BayesAME chooses all items, to the end of a run of at most 250, with the
alarm as a warning and with the fall back. Only runs with an alarm count: RMSE, coverage
and width of the 95 % interval at 10, 20, 33 and 50 % of the items.
"""

from __future__ import annotations

import argparse

import torch
from _common import SHARED, emit, one_thread, shared_references
from torch import Tensor

from gp_eval import BayesAME, EvaluationLoop, References, StoppingRule
from gp_eval._random import random_order
from gp_eval.alarm import check_range
from gp_eval.alarm.watch import is_look
from gp_eval.experiments.splits import Split, extrapolation, interpolation

NEVER = StoppingRule(width=1e-300)
SHARES = (0.1, 0.2, 0.33, 0.5)
LARGE = 2000  # items beyond which a random subset is taken


def table(name: str) -> References:
    scores = shared_references(name)
    order = random_order(len(scores.items), 0)[:LARGE].sort().values.tolist()
    return scores.subset(items=[scores.items[i] for i in order])


def split(scores: References, regime: str, seed: int) -> Split:
    n_targets = min(10, len(scores.models) // 3)
    if regime == "extrapolation":
        return extrapolation(scores, n_targets=n_targets)
    return interpolation(scores, n_targets=n_targets, target_seed=seed)


def first_alarm(scores: Tensor, references: Tensor) -> tuple[int, str] | None:
    for n in filter(is_look, range(10, min(len(scores), 401))):
        reason = check_range(scores[:n], references[:n]).reason
        if reason is not None:
            return n, reason
    return None


def alarms(name: str, regime: str, seeds: int) -> None:
    scores, found, count = table(name), [], 0
    for seed in range(seeds):
        made = split(scores, regime, seed)
        references = made.references(0.5, seed=seed)
        order = random_order(len(references.items), seed)
        for row in made.target_scores():
            count += 1
            found.append(first_alarm(row[order], references.scores[order]))
    raised = [alarm for alarm in found if alarm is not None]
    at = sorted(n for n, _ in raised)
    emit(
        set=name,
        regime=regime,
        references=len(references.models),
        targets=count,
        alarms=round(len(raised) / count, 3),
        reasons={r: sum(why == r for _, why in raised) for _, r in raised},
        median_n=at[len(at) // 2] if at else None,
    )


def one_run(
    references: References, scores: Tensor, *, seed: int, on_alarm: str
) -> tuple[list[tuple[float, float]], int | None]:
    """Estimates and widths after each item, and when an alarm was raised."""
    model = BayesAME(references, margin=len(references.items))
    loop = EvaluationLoop(model, references, stop=NEVER, seed=seed, on_alarm=on_alarm)
    size = min(250, len(references.items))
    while loop.n < size:
        for item in loop.ask():
            loop.tell(item, float(scores[item]))
    since = loop.result("target", references.items).range.since
    return list(zip(loop.estimates, loop.widths, strict=True)), since


def runs(name: str, regime: str, seeds: int) -> None:
    scores = table(name)
    errors: dict[tuple[str, float], list[tuple[float, float]]] = {}
    count = raised = 0
    for seed in range(seeds):
        made = split(scores, regime, seed)
        references = made.references(0.5, seed=seed)
        n_items = len(references.items)
        for t, row in enumerate(made.target_scores()):
            warned, since = one_run(references, row, seed=t, on_alarm="warn")
            count += 1
            if since is None:
                continue
            raised += 1
            safe, _ = one_run(references, row, seed=t, on_alarm="fallback")
            for share in SHARES:
                n = round(share * n_items)
                if since < n <= len(safe):
                    for kind, curve in (("warn", warned), ("fallback", safe)):
                        mean, width = curve[n - 1]
                        entry = mean - float(row.mean()), width
                        errors.setdefault((kind, share), []).append(entry)
    for (kind, share), entries in errors.items():
        error, width = torch.tensor(entries, dtype=torch.float64).T
        emit(
            set=name,
            regime=regime,
            on_alarm=kind,
            share=share,
            runs=len(entries),
            alarms=f"{raised} of {count}",
            rmse=round(float(error.square().mean().sqrt()), 4),
            coverage=round(float((error.abs() <= width / 2).double().mean()), 3),
            width=round(float(width.mean()), 4),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--runs", action="store_true")
    given = parser.parse_args()
    one_thread()
    names = given.sets or sorted(path.stem for path in (SHARED / "data").glob("*.npz"))
    for name in names:
        for regime in ("interpolation", "extrapolation"):
            (runs if given.runs else alarms)(name, regime, given.seeds)


if __name__ == "__main__":
    main()
