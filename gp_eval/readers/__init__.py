"""Logs of evaluation harnesses, read without the harness and without torch.

``read_logs`` detects formats and yields blocks of scores, ``build_references`` aligns
them by the ids of the items, ``read_told`` finds the scores of one target.
"""

from gp_eval.readers.build import Built, build_references
from gp_eval.readers.choose import Choice, choose
from gp_eval.readers.collect import Collection, read_logs
from gp_eval.readers.detect import FORMATS, detect
from gp_eval.readers.identity import as_inspect_ids, as_lm_eval_samples, split_items
from gp_eval.readers.policies import Policies
from gp_eval.readers.records import Block, Log, Options
from gp_eval.readers.told import Told, is_log, read_told, told_of, value_options

__all__ = [
    "FORMATS",
    "Block",
    "Built",
    "Choice",
    "Collection",
    "Log",
    "Options",
    "Policies",
    "Told",
    "as_inspect_ids",
    "as_lm_eval_samples",
    "build_references",
    "choose",
    "detect",
    "is_log",
    "read_logs",
    "read_told",
    "split_items",
    "told_of",
    "value_options",
]
