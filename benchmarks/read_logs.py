"""Seconds and peak memory of building references from lm-eval logs.

    OMP_NUM_THREADS=1 python benchmarks/read_logs.py [--files 50 --rows 10000]

Files as lm-eval 0.4.9+ writes them: four choices, a 5-shot prompt in each request, two
metrics, hashes. The goal is 50 files of 10,000 rows in under 60 s and 1 GB. Read in a
process of its own, so that the peak is that of reading.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATE = "2026-01-02T03-04-05.678901"


def write_file(folder: Path, model: int, rows: int, shots: str) -> int:
    """One model's samples; returns their bytes."""
    rng = random.Random(model)
    path = folder / f"org__model-{model}" / f"samples_bench_{DATE}.jsonl"
    path.parent.mkdir()
    with path.open("w", encoding="utf-8") as stream:
        for i in range(rows):
            prompt = f"{shots}Question: what is item {i}?\nAnswer:"
            resps = [[str(-10 * rng.random()), "False"] for _ in range(4)]
            correct = float(resps[i % 4][0] == max(resps, key=lambda r: float(r[0]))[0])
            row = {
                "doc_id": i,
                "doc": {"question": f"what is item {i}?", "choices": list("abcd")},
                "target": str(i % 4),
                "arguments": {
                    f"gen_args_{c}": {"arg_0": prompt, "arg_1": f" {'abcd'[c]}"}
                    for c in range(4)
                },
                "resps": [[r] for r in resps],
                "filtered_resps": resps,
                "filter": "none",
                "metrics": ["acc", "acc_norm"],
                "doc_hash": hashlib.sha256(str(i).encode()).hexdigest(),
                "prompt_hash": hashlib.sha256(prompt.encode()).hexdigest(),
                "target_hash": hashlib.sha256(str(i % 4).encode()).hexdigest(),
                "acc": correct,
                "acc_norm": correct,
            }
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path.stat().st_size


def peak_mb() -> float:
    """As in _common, which imports torch."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def build(folder: Path, value: str) -> None:
    """Read, align and write; prints the figures."""
    from gp_eval.readers import Options, build_references, read_logs

    start = time.perf_counter()
    metric = "gold_prob" if value == "gold-prob" else "acc"
    collection = read_logs([folder], options=Options(value=value))
    read = time.perf_counter() - start
    built = build_references(collection, metric=metric)
    without_torch = peak_mb()  # references are tensors, their reader is not
    built.references().write(folder / "refs.npz")
    figures = {
        "seconds": time.perf_counter() - start,
        "seconds_reading": read,
        "cpu_seconds": time.process_time(),
        "peak_mb": peak_mb(),
        "peak_mb_before_torch": without_torch,
        "items": len(built.items),
        "models": len(built.models),
    }
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--build", nargs=2, metavar=("FOLDER", "VALUE"))
    arguments = parser.parse_args()
    if arguments.build:
        build(Path(arguments.build[0]), arguments.build[1])
        return
    from _common import emit, one_thread

    one_thread()
    shots = "".join(f"Question: example {s}?\nAnswer: a\n\n" * 2 for s in range(5))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = sum(
            write_file(folder, m, arguments.rows, shots) for m in range(arguments.files)
        )
        for value in ("score", "gold-prob"):
            done = subprocess.run(
                [sys.executable, __file__, "--build", name, value],
                capture_output=True,
                text=True,
                check=True,
            )
            emit(
                files=arguments.files,
                rows=arguments.rows,
                log_mb=size / 2**20,
                value=value,
                **json.loads(done.stdout),
            )


if __name__ == "__main__":
    main()
