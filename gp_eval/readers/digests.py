"""Digests that logs hold: the same documents, the same prompts?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gp_eval._names import some
from gp_eval.errors import DataError, ScoreError
from gp_eval.readers.scores import LongTable

__all__ = ["check_documents", "check_hashes", "common_prompts", "count_other_prompts"]


def check_hashes(table: LongTable, how: str, counts: dict[str, Any]) -> dict[str, int]:
    """Digest of every item that has one, by id.

    Raises:
        DataError: If items of one id are different documents in different files.
    """
    logged = table.frame.loc[table.frame["hash"] != 0, ["item", "hash", "source"]]
    kinds = logged.groupby("item")["hash"].nunique()
    differing = kinds.index[kinds > 1]
    counts["items_with_digest"] = len(kinds)
    counts["items_whose_digests_differ"] = len(differing)
    if len(differing) and how == "check":
        first = logged[logged["item"] == differing[0]].drop_duplicates("hash")
        files = [Path(table.sources[i]).name for i in first["source"]]
        raise DataError(
            f"items {some([table.items[i] for i in differing])} are not the same "
            f"documents in all files, such as {some(files)}: another version of the "
            "data or wrong ids; leave a file out, or give --hashes ignore"
        )
    prompts = table.frame.loc[table.frame["prompt"] != 0].groupby("item")["prompt"]
    counts["items_whose_prompts_differ"] = int((prompts.nunique() > 1).sum())
    single = logged.drop_duplicates("item")
    single = single[~single["item"].isin(differing)]
    return {
        table.items[i]: h
        for i, h in zip(single["item"], single["hash"].tolist(), strict=True)
    }


def common_prompts(table: LongTable) -> dict[str, int]:
    """Digest of the prompt of every item that has the same one in all files."""
    logged = table.frame.loc[table.frame["prompt"] != 0, ["item", "prompt"]]
    logged = logged.drop_duplicates()
    single = logged[~logged["item"].duplicated(keep=False)]
    return {
        table.items[i]: prompt
        for i, prompt in zip(single["item"], single["prompt"].tolist(), strict=True)
    }


def check_documents(digests: Mapping[str, int], known: Mapping[str, str]) -> None:
    """Raise ``ScoreError`` for items that the references were not scored on."""
    differing = [
        item
        for item, digest in digests.items()
        if item in known and known[item] != f"{digest:016x}"
    ]
    if differing:
        raise ScoreError(
            f"items {some(differing)} are not the documents that the references were "
            "scored on: another version of the data, or wrong ids"
        )


def count_other_prompts(table: LongTable, known: Mapping[str, str]) -> int:
    """Number of items whose prompt is not the one that the references all had."""
    logged = table.frame.loc[table.frame["prompt"] != 0, ["item", "prompt"]]
    return len(
        {
            item
            for item, prompt in zip(logged["item"], logged["prompt"], strict=True)
            if known.get(table.items[item], f"{prompt:016x}") != f"{prompt:016x}"
        }
    )
