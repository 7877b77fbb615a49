"""Tasks and models for lm-eval that need no network, and its own full runs of them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from logs import write_lm_eval

__all__ = ["MC", "full_run", "make_tasks", "no_built_in_tasks", "tiny_model"]

MC = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
fewshot_split: test
num_fewshot: 3
output_type: multiple_choice
doc_to_text: "Question: {{{{q}}}} Answer:"
doc_to_target: gold
doc_to_choice: "{{{{choices}}}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
"""
_GEN = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
fewshot_split: test
num_fewshot: 2
output_type: generate_until
doc_to_text: "Question: {{{{q}}}} Answer:"
doc_to_target: "{{{{choices[gold]}}}}"
generation_kwargs:
  until: ["Question"]
  max_gen_toks: 4
filter_list:
  - name: whole
    filter:
      - function: take_first
  - name: number
    filter:
      - function: regex
        regex_pattern: "([0-9]+)"
      - function: take_first
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""


def make_tasks(folder: Path) -> Path:
    """``toy_mc`` and ``toy_two`` (3 shots), ``toy_gen`` (2 shots, two filters)."""
    for name, form, n in (("toy_mc", MC, 24), ("toy_two", MC, 9), ("toy_gen", _GEN, 9)):
        data = folder / f"{name}.data"
        lines = []
        for i in range(n):
            a, b = i, 7 * i % 11
            choices = [str(a + b), str(a + b + 1), str(a * b + 3), str(a)]
            k = i % 4
            choices = choices[-k:] + choices[:-k]
            row = {"q": f"What is {a} + {b}?", "choices": choices, "gold": k}
            lines.append(json.dumps(row) + "\n")
        data.write_text("".join(lines))
        (folder / f"{name}.yaml").write_text(form.format(name=name, data=data))
    return folder


def no_built_in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of tasks of the harness are not indexed, which takes ten seconds."""
    import lm_eval.tasks

    manager = partial(lm_eval.tasks.TaskManager, include_defaults=False)
    monkeypatch.setattr("lm_eval.tasks.TaskManager", manager)


def tiny_model(folder: Path) -> Path:
    """A random GPT-2 of 0.2 MB with a tokenizer of its own."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[end],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [f"Question: What is {a} + {b}? Answer: {a + b}" for a, b in _grid(20)]
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=end, bos_token=end, pad_token=end
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = GPT2Config(
            vocab_size=len(fast),
            n_positions=256,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
        GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def _grid(n: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(n) for b in range(n)]


def full_run(
    tasks: Path, names: list[str], **options: Any
) -> dict[str, list[dict[str, Any]]]:
    """Rows of lm-eval's own run of all documents, by task."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    with (  # what they look up takes half a minute, and a network
        mock.patch("lm_eval.evaluator.add_env_info"),
        mock.patch("lm_eval.evaluator.add_tokenizer_info"),
    ):
        results = simple_evaluate(
            tasks=names,
            task_manager=manager,
            log_samples=True,
            bootstrap_iters=0,
            **options,
        )
    return results["samples"]


def write_references(
    folder: Path, rows: dict[str, list[dict[str, Any]]], *, metric: str
) -> None:
    """Logs of four models on the documents of a full run, with made-up scores."""
    for k in range(4):
        for task, of_task in rows.items():
            made = [
                {
                    **{key: row[key] for key in ("doc_id", "filter", "doc_hash")},
                    **{"prompt_hash": row["prompt_hash"], "resps": [], "target": "0"},
                    "metrics": [metric],
                    metric: ((7 * row["doc_id"] + 3 * k * row["doc_id"] + k) % 11) / 10,
                }
                for row in of_task
            ]
            write_lm_eval(folder, made, model=f"org__m{k}", task=task)
