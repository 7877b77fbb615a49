"""Real files: each reads to the counts its source note states, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gp_eval.errors import DataError
from gp_eval.readers import Log, Options, Policies, build_references, detect, read_logs
from gp_eval.readers.collect import find_files
from gp_eval.readers.records import SCORED


def read(path: Path) -> Log:
    (log,) = read_logs([path], options=Options(allow_pickle=True)).logs
    return log


# Part of the path, scores of a block, different ids, metric, its mean.
READABLE = [
    ("v03_write_out/llama/winogrande", 50, 50, "acc", 0.70),
    ("v03_write_out/llama13/winogrande", 50, 50, "acc", 0.72),
    ("v03_write_out/mistral/winogrande", 50, 50, "acc", 0.82),
    ("v03_write_out/mistral/truthfulqa_gen", 20, 20, "bleurt_acc", 0.45),
    ("v040_alpha_2023/_winogrande", 2, 2, "acc", 0.5),
    ("v040_alpha_2023/pretrained=", 4, 4, "acc", 0.25),
    ("v043_no_filter_key/meta-llama", 50, 50, "acc", 0.92),
    ("v043_no_filter_key/microsoft", 4, 4, "bleu_score", 0.336),
    ("samples_eqbench_ca", 10, 10, "eqbench", 0.0),
    ("v04_2025_generate/samples_truthfulqa_gen", 20, 20, "bleu_acc", 0.5),
    ("negotiationtom_belief_2026-07-08T16", 20, 20, "acc", 0.45),
    ("negotiationtom_belief_2026-07-08T18", 20, 20, "acc", 0.45),
    ("negotiationtom_desire", 20, 20, "acc", 0.6),
    ("negotiationtom_intention_2026-07-08T16", 20, 20, "exact_match", 0.2),
    ("full/dummy/samples_toy_mc", 40, 40, "acc", 0.225),
    ("full/dummy/samples_toy_gen", 30, 30, "exact_match", 0.0),
    ("subset_sorted/dummy/samples_toy_mc", 4, 4, "acc", 0.5),
    ("hf_tiny/tiny-0/samples", 40, 40, "acc", 0.425),
    ("hf_tiny/tiny-1/samples", 40, 40, "acc", 0.525),
    ("hf_tiny/tiny-2/samples", 40, 40, "acc", 0.35),
    ("data_arc_qwen", 3, 3, "choice", 1 / 3),
    ("data_pubmedqa", 2, 2, "choice", 1.0),
    ("toy_oHCVbFU6", 30, 30, "includes", 1 / 3),
    ("toy_QR2iuz6Q", 3, 3, "includes", 0.0),
    ("toy_CbjkpPeE", 10, 10, "includes", 0.3),
    ("toy-many_E9dezYxW", 6, 2, "frac", 0.625),
    ("toy-fail_kMAQT5co", 6, 6, "boom", 1.0),
    ("toy-adaptive", 20, 20, "includes", 0.2),
    ("amuub5rxBvSEFrFvASJfXq-recovered", 12, 12, "includes", 0.25),
    ("amuub5rxBvSEFrFvASJfXq.eval", 12, 12, "includes", 0.25),
    ("23-55-47-00-00_toy-fail", 6, 6, "boom", 1.0),
    ("23-55-56-00-00_toy-fail", 6, 6, "boom", 1.0),
    ("toy_many_3ids_3epochs_nan.json", 9, 3, "choice", 0.0),
    ("15-18-04-05-00_popularity", 10, 10, "match", 0.8),
    ("20-28-13-04-00_popularity", 3, 3, "match", 2 / 3),
    ("log_formats.eval", 1, 1, "match", 0.0),
    ("log_formats.json", 1, 1, "match", 0.0),
    ("mmlu-summary-choices", 1, 1, "choice", 0.0),
    ("commonsense-dataset=hellaswag", 10, 10, "exact_match", 0.3),
    ("mmlu-subject=philosophy", 10, 10, "exact_match", 0.1),
    ("narrative_qa-model", 5, 5, "exact_match", 0.0),
    ("details_anli:r1", 2, 2, "acc", 0.0),
    ("details_squad_v2", 2, 2, "em", 0.0),
    ("every_eval_ever/", 1, 1, "score", 1.0),
    ("winogrande_3models_long.csv", 1267, 1267, "score", 0.738),
    ("winogrande_3models_long_50.parquet", 50, 50, "score", 0.70),
    ("winogrande_3models_wide_50.csv", 50, 50, "score", 0.70),
    ("arc_challenge_10models_50items.jbl", 50, 50, "score", 0.76),
    ("lb_layout_tiny.pickle", 50, 50, "score", 0.76),
    ("gqa_predictions_50.csv", 50, 50, "score", 0.42),
]
REFUSED = [
    ("subset_unsorted_WRONG_IDS/dummy/samples", "not in rising order.*4084"),
]
WITHOUT_SCORES = [
    ("15-17-00-05-00_popularity", "10 samples and no score"),
    ("20-28-13-04-00_no-samples", "cancelled. has no samples"),
]


def one(folder: Path, part: str) -> Path:
    (path,) = (
        f
        for f, _ in find_files([folder])
        if part in str(f.relative_to(folder)) and detect(f) is not None
    )
    return path


def test_every_sample_is_in_one_of_the_lists_here(shared_samples: Path) -> None:
    known = {p for p, *_ in [*READABLE, *REFUSED, *WITHOUT_SCORES]}
    listed = {one(shared_samples, part) for part in known}
    detected = {f for f, _ in find_files([shared_samples]) if detect(f) is not None}
    unlisted = detected - listed
    # The 18:15 run of 'intention' repeats the 16:04 one, row for row.
    assert [f.name[:40] for f in unlisted] == [
        "samples_negotiationtom_intention_2026-07"
    ]


@pytest.mark.parametrize(("part", "n", "n_ids", "metric", "mean"), READABLE)
def test_a_sample_reads_to_the_counts_of_its_note(
    shared_samples: Path, part: str, n: int, n_ids: int, metric: str, mean: float
) -> None:
    blocks = read(one(shared_samples, part)).blocks
    block = min((b for b in blocks if b.metric == metric), key=lambda b: b.model)
    assert len(block.items) == n
    assert len(set(block.items)) == n_ids
    scored = block.scores[block.states == SCORED]
    # The means are those of read_all.py there, to the digits it is quoted with here.
    assert scored.mean() == pytest.approx(mean, abs=5e-4)


@pytest.mark.parametrize(("part", "reason"), REFUSED)
def test_a_sample_with_wrong_ids_is_refused_with_the_reason(
    shared_samples: Path, part: str, reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        read(one(shared_samples, part))


@pytest.mark.parametrize(("part", "reason"), WITHOUT_SCORES)
def test_a_sample_without_scores_builds_nothing_and_says_why(
    shared_samples: Path, part: str, reason: str
) -> None:
    collection = read_logs([one(shared_samples, part)])
    with pytest.raises(DataError, match=reason):
        build_references(collection)


def test_the_full_winogrande_table_has_the_means_of_the_note(
    shared_samples: Path,
) -> None:
    built = build_references(
        read_logs([shared_samples / "csv" / "winogrande_3models_long.csv"])
    )
    assert built.scores.shape == (1267, 3)
    assert dict(zip(built.models, built.scores.mean(0).round(3), strict=True)) == {
        "llama": 0.738,
        "llama13": 0.762,
        "mistral": 0.781,
    }


def test_wide_long_and_log_of_the_same_scores_build_the_same_matrix(
    shared_samples: Path,
) -> None:
    folder = shared_samples / "csv"
    wide = build_references(read_logs([folder / "winogrande_3models_wide_50.csv"]))
    long = build_references(read_logs([folder / "winogrande_3models_long_50.parquet"]))
    logs = build_references(
        read_logs([shared_samples / "lm_eval" / "v03_write_out"]), tasks=["winogrande"]
    )
    for other in (long, logs):
        assert other.items == wide.items
        assert other.models == wide.models
        np.testing.assert_array_equal(other.scores, wide.scores)


def test_pickles_of_peers_agree_with_each_other(shared_samples: Path) -> None:
    """Both were cut from the same scores."""
    folder = shared_samples / "peer_formats"
    options = Options(allow_pickle=True)
    jbl = read_logs([folder / "arc_challenge_10models_50items.jbl"], options=options)
    lb = read_logs([folder / "lb_layout_tiny.pickle"], options=options)
    np.testing.assert_array_equal(
        build_references(jbl).scores, build_references(lb).scores
    )


def test_an_eval_file_and_its_json_hold_the_same_score(shared_samples: Path) -> None:
    folder = shared_samples / "inspect" / "repo_tests"
    (a,), (b,) = (
        read(folder / f"log_formats.{kind}").blocks for kind in ("eval", "json")
    )
    assert (a.items, a.scores.tolist()) == (b.items, b.scores.tolist())
    assert (a.model, a.task, a.run) == (b.model, b.task, b.run)


def test_a_retry_replaces_the_failed_sample_of_the_run_it_repeats(
    shared_samples: Path,
) -> None:
    built = build_references(
        read_logs([shared_samples / "inspect" / "own_0.3.285" / "retry"])
    )
    assert built.items == [f"s{i}" for i in range(6)]
    assert built.counts["superseded_by_a_retry"] == 6
    assert built.counts["errored"] == 0


def test_a_killed_run_and_its_recovery_count_once(shared_samples: Path) -> None:
    built = build_references(
        read_logs([shared_samples / "inspect" / "own_0.3.285" / "killed"])
    )
    assert built.scores.shape == (12, 1)


def test_two_equal_runs_in_one_folder_are_one_and_counted(shared_samples: Path) -> None:
    built = build_references(
        read_logs([shared_samples / "lm_eval" / "v04_recent_repeat_runs"]),
        tasks=["*_belief"],
    )
    assert built.scores.shape == (20, 1)
    assert built.counts["cells_with_several_runs"] == 20


def test_a_nested_metric_is_refused_by_name_with_the_usable_ones(
    shared_samples: Path,
) -> None:
    collection = read_logs([shared_samples / "lm_eval" / "v04_recent_repeat_runs"])
    with pytest.raises(
        DataError, match=r"micro_f1: .* is a list; usable(?s:.*)exact_m"
    ):
        build_references(collection, tasks=["*_intention"], metric="micro_f1")
    many = shared_samples / "inspect/own_0.3.285/toy_many_3ids_3epochs_nan.json"
    with pytest.raises(DataError, match=r"multi: .* is a dict; usable(?s:.*)multi/a"):
        build_references(read_logs([many]), metric="multi")


def test_scores_of_another_scale_are_refused_until_it_is_named(
    shared_samples: Path,
) -> None:
    collection = read_logs([one(shared_samples, "v043_no_filter_key/microsoft")])
    with pytest.raises(DataError, match=r"between 58.*--scale"):
        build_references(collection, metric="chrf_score")
    mapped = build_references(
        collection, metric="chrf_score", policies=Policies(scale=(0.0, 100.0))
    )
    kept = build_references(
        collection, metric="chrf_score", policies=Policies(scale="keep")
    )
    np.testing.assert_allclose(mapped.scores * 100, kept.scores, rtol=1e-12)


def test_the_mean_of_logged_scores_is_the_one_lm_eval_reports(
    shared_samples: Path,
) -> None:
    """Aggregates of results_*.json; nothing differs, or it would be counted."""
    folder = shared_samples / "lm_eval" / "own_0.4.13" / "hf_tiny"
    collection = read_logs([folder])
    built = build_references(collection, metric="acc")
    assert built.scores.mean(0).round(3).tolist() == [0.425, 0.525, 0.35]
    assert not collection.notes
    assert built.meta["models"]["tiny-0"]["harness"] == "0.4.13"


def test_readers_import_no_torch_and_no_harness(shared_samples: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from gp_eval.readers import build_references, read_logs\n"
        "c = read_logs([Path(sys.argv[1])])\n"
        "build_references(c, metric='acc')\n"
        "heavy = {'torch', 'lm_eval', 'inspect_ai'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, shared_samples / "lm_eval/own_0.4.13/hf_tiny"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
