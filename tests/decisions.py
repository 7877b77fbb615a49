"""The rule of a decision, spelled out and nothing else."""

from __future__ import annotations

from gp_eval.decision import Decision


def literal_verdict(decision: Decision, p: list[float], batch: int = 1) -> bool | None:
    """The rule, spelled out over iterations."""
    if len(p) % batch:
        return None
    after = [p[n - 1] for n in range(batch, len(p) + 1, batch)]
    window = -(-decision.window // batch)
    if len(after) < window:
        return None
    sure = [p > decision.level for p in after[-window:]]
    against = [1.0 - p > decision.level for p in after[-window:]]
    return True if all(sure) else False if all(against) else None
