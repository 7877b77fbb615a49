"""A task of lm-eval whose requests are built once, for all documents.

Few-shot examples are drawn document after document from one generator. Building all
requests first, as a full run does, gives every document the prompt of the full run,
whichever documents are then sent to the model, and in whatever order.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gp_eval.drivers.lm_eval_prepare import Prepared
from gp_eval.errors import DriverError
from gp_eval.readers.records import hash_number

__all__ = ["BuiltTask"]


class BuiltTask:
    """Requests of one task.

    Args:
        name: Name of the task.
        task: lm-eval's task.
        prepared: What it would be evaluated with.
    """

    def __init__(self, name: str, task: Any, prepared: Prepared) -> None:
        self.name, self._task, self._lm = name, task, prepared.lm
        given = prepared.arguments
        template = given.get("apply_chat_template") or False
        chat = {"chat_template": None, "tokenizer_name": ""}
        if template:
            chat = {
                "chat_template": getattr(self._lm, "apply_chat_template", None),
                "tokenizer_name": getattr(self._lm, "tokenizer_name", ""),
            }
        task.build_all_requests(
            limit=None,
            rank=0,
            world_size=1,
            cache_requests=False,
            rewrite_requests_cache=False,
            system_instruction=given.get("system_instruction"),
            apply_chat_template=bool(template),
            fewshot_as_multiturn=given.get("fewshot_as_multiturn", False),
            **chat,
        )
        self._by_doc: dict[int, list[Any]] = defaultdict(list)
        for instance in task.instances:
            self._by_doc[instance.doc_id].append(instance)
        for instances in self._by_doc.values():
            instances.sort(key=lambda instance: instance.idx)

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self._by_doc)

    def document_hash(self, doc_id: int) -> int:
        """First 64 bits of what lm-eval logs as ``doc_hash``."""
        return hash_number(_hash(_as_json(self._by_doc[doc_id][0].doc)))

    def prompt_hash(self, doc_id: int) -> int:
        """First 64 bits of what lm-eval logs as ``prompt_hash``."""
        return hash_number(_hash(self._by_doc[doc_id][0].arguments[0]))

    def evaluate(self, doc_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Send documents to the model; rows as ``--log_samples`` writes them.

        Args:
            doc_ids: In rising order, which is that of the rows of each filter.
        """
        chosen = [i for doc_id in doc_ids for i in self._by_doc[doc_id]]
        for instance in chosen:  # a document may be tried again
            instance.resps, instance.filtered_resps = [], {}
        self._ask_model(chosen)
        self._task._instances = chosen  # what the filters are applied to
        self._task.apply_filters()
        return [
            self._row(doc_id, filter)
            for filter in chosen[0].filtered_resps
            for doc_id in doc_ids
        ]

    def _ask_model(self, instances: Sequence[Any]) -> None:
        by_kind: dict[str, list[Any]] = defaultdict(list)
        for instance in instances:
            by_kind[instance.request_type] += [instance] * instance.repeats
        for kind, requests in by_kind.items():
            answers = getattr(self._lm, kind)(requests)
            if len(answers) != len(requests):
                raise DriverError(
                    f"lm-eval: {len(answers)} answers to {len(requests)} requests"
                )
            for request, answer in zip(requests, answers, strict=True):
                request.resps.append(answer)

    def _row(self, doc_id: int, filter: str) -> dict[str, Any]:
        requests = self._by_doc[doc_id]
        doc = requests[0].doc
        metrics = self._task.process_results(
            doc, [request.filtered_resps[filter] for request in requests]
        )
        target = str(self._task.doc_to_target(doc))
        return {
            "doc_id": doc_id,
            "doc": doc,
            "target": target,
            "arguments": {
                f"gen_args_{i}": {f"arg_{j}": a for j, a in enumerate(request.args)}
                for i, request in enumerate(requests)
            },
            "resps": _as_text([request.resps for request in requests]),
            "filtered_resps": _as_text(
                [request.filtered_resps[filter] for request in requests]
            ),
            "filter": filter,
            "metrics": list(metrics),
            "doc_hash": _hash(_as_json(doc)),
            "prompt_hash": _hash(requests[0].arguments[0]),
            "target_hash": _hash(target),
            **metrics,
        }


def _as_json(doc: Any) -> str:
    from lm_eval.utils import handle_non_serializable

    return json.dumps(
        doc, indent=2, default=handle_non_serializable, ensure_ascii=False
    )


def _hash(text: str) -> str:
    from lm_eval.utils import hash_string

    return str(hash_string(text))


def _as_text(value: Any) -> Any:
    """Nested lists of texts, as lm-eval logs responses."""
    if isinstance(value, list | tuple):
        return [_as_text(part) for part in value]
    return str(value)
