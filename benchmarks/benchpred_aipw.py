"""Our AIPW (the paper's formula) and its authors' code on the same splits.

    pip install --no-deps benchpred==1.0.0
    OMP_NUM_THREADS=1 python benchmarks/benchpred_aipw.py --seeds 5

The published package pins old versions of half a machine, so it is installed without
its dependencies and only its AIPW module is loaded. It fits one ridge regression for
each target and coreset size; ours gives all sizes at once. Its formula puts the weight
on the residual term and does not end at the truth.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
import types

import numpy as np
import torch
from _common import emit, one_thread, shared_references

from gp_eval.experiments import extrapolation, interpolation
from gp_eval.experiments.simulators import make_simulator

SIZES = (27, 54, 108, 179, 270, 406, 514)


def published_aipw() -> type:
    """The class of the package, past an ``__init__`` that imports everything."""
    spec = importlib.util.find_spec("benchpred")
    if spec is None:
        raise SystemExit("pip install --no-deps benchpred==1.0.0")
    package = types.ModuleType("benchpred")
    package.__path__ = list(spec.submodule_search_locations or [])
    sys.modules["benchpred"] = package
    return importlib.import_module("benchpred.aipw").AIPWPred


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    published, simulator = published_aipw(), make_simulator("aipw")
    scores = shared_references("benchpred_ifeval")
    for name, split in (
        ("interpolation", interpolation(scores)),
        ("extrapolation", extrapolation(scores)),
    ):
        targets = split.target_scores()
        truth = targets.mean(1, keepdim=True)
        n_items = targets.shape[1]
        squares = {"ours": [], "theirs": []}
        spent = {"ours": 0.0, "theirs": 0.0}
        for seed in range(options.seeds):
            references = split.references(0.5, seed=seed)
            matrix = references.scores.numpy().T
            start = time.process_time()
            theirs = []
            for size in SIZES:
                method = published().fit(matrix, size, seed=seed)
                coreset = method.get_coreset()
                theirs.append(method.predict(targets.numpy()[:, coreset]))
            spent["theirs"] += time.process_time() - start
            rest = [i for i in range(n_items) if i not in set(coreset.tolist())]
            order = torch.tensor([*coreset.tolist(), *rest])
            start = time.process_time()
            curves = simulator(references, targets, order, n_max=n_items)
            spent["ours"] += time.process_time() - start
            ours = curves.mean[:, [size - 1 for size in SIZES]]
            table = torch.from_numpy(np.stack(theirs, axis=1)).double()
            squares["ours"].append((ours - truth).square())
            squares["theirs"].append((table - truth).square())
        rmse = {k: torch.cat(v).mean(0).sqrt().tolist() for k, v in squares.items()}
        emit(
            benchmark="benchpred_aipw",
            data="benchpred_ifeval",
            regime=name,
            seeds=options.seeds,
            targets=10,
            n=SIZES,
            rmse_ours=[round(v, 4) for v in rmse["ours"]],
            rmse_theirs=[round(v, 4) for v in rmse["theirs"]],
            cpu_s_ours_all_n=round(spent["ours"], 2),
            cpu_s_theirs_these_n=round(spent["theirs"], 2),
        )


if __name__ == "__main__":
    main()
