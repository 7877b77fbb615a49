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

__all__ = ["print_items"]


def print_items(
    items: Sequence[str], form: str, *, references: References, task: str | None
) -> None:
    """Print items on stdout; for a harness also its flags, on stderr.

    Args:
        items: Ids.
        form: ``ids``, ``json``, ``csv``, ``lm-eval`` (the JSON of ``--samples``) or
            ``inspect`` (the list of ``--sample-id``). These two print nothing for no
            items, because a harness takes an empty list for all of them.
        references: What the ids are of.
        task: Name of the task, where the references do not have it.

    Raises:
        GpEvalError: For ids that the harness's command line cannot express.
    """
    if form == "json":
        print(json.dumps(list(items)))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([["item"], *([item] for item in items)])
    elif form in ("lm-eval", "inspect"):
        if items:
            _print_for_harness(items, form, references, task)
    else:
        for item in items:
            print(item)


def _print_for_harness(
    items: Sequence[str], form: str, references: References, task: str | None
) -> None:
    groups = dict(
        zip(references.items, references.groups or references.items, strict=True)
    )
    split = split_items(items, meta=references.meta, groups=groups, task=task)
    if form == "lm-eval":
        samples = as_lm_eval_samples(split)
        text = json.dumps(samples)
        print(text)
        note(
            f"lm_eval run ... --tasks {','.join(samples)} "
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
    print(text)
    note(f"inspect eval ... --sample-id {shlex.quote(text)}")
