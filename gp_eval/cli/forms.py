"""How ``ask`` prints items: for people, for scripts, and for the harnesses."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Sequence

from gp_eval.cli.output import note
from gp_eval.data import References
from gp_eval.errors import GpEvalError
from gp_eval.readers.identity import (
    as_inspect_ids,
    as_lm_eval_samples,
    split_items,
)

__all__ = ["print_asked"]

Pair = tuple[str, str]  # target and item


def print_asked(
    asked: Sequence[str] | Sequence[Pair],
    form: str,
    *,
    pairs: bool,
    references: References,
    task: str | None,
) -> None:
    """Print what was asked on stdout; for a harness also its flags, on stderr.

    Args:
        asked: Items, or pairs of a target and an item.
        form: ``ids``, ``json``, ``csv``, ``lm-eval`` (the JSON of ``--samples``) or
            ``inspect`` (the list of ``--sample-id``). These two print nothing for no
            items, because a harness takes an empty list for all of them.
        pairs: Whether targets are named; a harness then gets a line for each, the
            target before it.
        references: What the ids are of.
        task: Name of the task, where the references do not have it.

    Raises:
        GpEvalError: For ids that the harness's command line cannot express.
    """
    columns = ["target", "item"] if pairs else ["item"]
    rows = [(one,) if isinstance(one, str) else one for one in asked]
    if form == "json":
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        print(json.dumps(named if pairs else asked))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([columns, *rows])
    elif form in ("lm-eval", "inspect"):
        items: dict[str, list[str]] = {}
        for row in rows:
            items.setdefault(f"{row[0]}\t" if pairs else "", []).append(row[-1])
        for prefix, of_target in items.items():
            _print_for_harness(prefix, of_target, form, references, task)
    else:
        for row in rows:
            print("\t".join(row))


def _print_for_harness(
    prefix: str,
    items: Sequence[str],
    form: str,
    references: References,
    task: str | None,
) -> None:
    groups = dict(
        zip(references.items, references.groups or references.items, strict=True)
    )
    split = split_items(items, meta=references.meta, groups=groups, task=task)
    if form == "lm-eval":
        samples = as_lm_eval_samples(split)
        text = json.dumps(samples)
        print(f"{prefix}{text}")
        note(
            f"{prefix}lm_eval run ... --tasks {','.join(samples)} "
            f"--samples {shlex.quote(text)} --log_samples   (exactly these "
            "tasks: any other would run in full)"
        )
        return
    ids = as_inspect_ids(split)
    wrong = [i for i in ids if "," in i or "\n" in i]
    if wrong:
        raise GpEvalError(
            f"Inspect's command line cannot express the id {wrong[0]!r}: pass the ids "
            "of --as json to inspect_ai.eval(sample_id=...), each through glob.escape"
        )
    text = ",".join(ids)
    print(f"{prefix}{text}")
    note(f"{prefix}inspect eval ... --sample-id {shlex.quote(text)}")
