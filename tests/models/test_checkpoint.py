from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.means import ConstantMean
from multi_target_oracle import MultiTargetProblem, make_multi_target_problem

from gp_eval.data import References
from gp_eval.errors import StateMismatchError
from gp_eval.kernels import ReferenceMaternKernel, ReferenceScoreKernel
from gp_eval.models import MultiTargetBayesAME

CLOSE = {"rtol": 1e-12, "atol": 1e-15}


@pytest.fixture
def problem() -> MultiTargetProblem:
    return make_multi_target_problem(1, counts=(1,) * 16)


def make(problem: MultiTargetProblem, **options) -> MultiTargetBayesAME:
    usual = {"n_targets": 3, "steps": 4, "refit_every": 3}
    return MultiTargetBayesAME(problem.references, **usual | options)


def tell(model: MultiTargetBayesAME, problem: MultiTargetProblem, start, stop) -> None:
    pairs = [(i, t) for i in range(start, stop) for t in range(3)]
    items, targets = torch.tensor(pairs).T
    model.condition(torch.tensor(pairs), problem.scores[targets, items])


@pytest.fixture
def saved(problem: MultiTargetProblem, tmp_path: Path) -> Path:
    model = make(problem)
    tell(model, problem, 0, 7)
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def refused(
    path: Path, problem: MultiTargetProblem, model: MultiTargetBayesAME, match: str
) -> None:
    """Loading is an error, after which the model is as it was."""
    state = {name: v.clone() for name, v in model.model.state_dict().items()}
    before, n, updates = model.performance(), model.model.n, dict(model.updates)
    with pytest.raises(StateMismatchError, match=match):
        model.load(path)
    assert model.model.n == n
    assert model.updates == updates
    for name, value in model.model.state_dict().items():
        assert torch.equal(value, state[name]), name
    after = model.performance()
    assert torch.equal(after.mean, before.mean)
    assert torch.equal(after.covariance, before.covariance)


@pytest.mark.parametrize(
    ("counts", "weighted"), [((1,) * 16, False), ((1,) * 16, True), ((4, 9, 6), False)]
)
def test_a_loaded_model_is_the_saved_one_and_goes_on_alike(
    counts: tuple[int, ...], weighted: bool, tmp_path: Path
) -> None:
    problem = make_multi_target_problem(1, counts=counts, weighted=weighted)
    model, again = make(problem), make(problem, seed=5)
    tell(model, problem, 0, 9)
    model.acquisition()
    model.save(tmp_path / "model.npz")
    again.load(str(tmp_path / "model.npz"))
    assert again.updates == model.updates
    assert list(again.updates) == [6, 15, 24]
    assert again.model.evaluated == model.model.evaluated
    for name, value in model.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value), name
    for stop in (9, 10, 16):
        if stop > 9:
            for made in (model, again):
                tell(made, problem, made.model.n // 3, stop)
        ours, theirs = again.performance(), model.performance()
        torch.testing.assert_close(ours.mean, theirs.mean, **CLOSE)
        torch.testing.assert_close(ours.covariance, theirs.covariance, **CLOSE)
    assert list(again.updates) == list(model.updates) == [6, 15, 24, 33, 42]
    # Rounding of other operations goes through four steps of AdamW.
    for n, values in model.updates.items():
        for name, value in values.items():
            assert again.updates[n][name] == pytest.approx(value, rel=1e-8), name


def test_a_model_without_scores_and_training_comes_back(
    problem: MultiTargetProblem, tmp_path: Path
) -> None:
    model, again = make(problem), make(problem, seed=9)
    model.save(tmp_path / "model.npz")
    again.load(tmp_path / "model.npz")
    assert again.updates == {}
    assert again.model.n == 0
    assert torch.equal(again.performance().covariance, model.performance().covariance)
    with torch.no_grad():
        model.model.covar_module.task_weights.zero_()
    assert not torch.equal(
        again.model.covar_module.task_weights, model.model.covar_module.task_weights
    )


def test_kernels_and_mean_of_ones_own_come_back(
    problem: MultiTargetProblem, tmp_path: Path
) -> None:
    def build(constant: float) -> MultiTargetBayesAME:
        mean = ConstantMean()
        mean.constant = constant
        return make(
            problem, latents=[MaternKernel(nu=1.5), RBFKernel()], mean_module=mean
        )

    model, again = build(0.8), build(0.1)
    tell(model, problem, 0, 4)
    model.save(tmp_path / "model.npz")
    again.load(tmp_path / "model.npz")
    torch.testing.assert_close(
        again.performance().mean, model.performance().mean, **CLOSE
    )
    assert again.model.mean_module.constant.item() == pytest.approx(0.8)


def test_scores_and_parameters_keep_double_precision(
    problem: MultiTargetProblem, tmp_path: Path
) -> None:
    model, again = make(problem), make(problem)
    score = torch.tensor([0.1 + 1e-15], dtype=torch.float64)
    model.condition(torch.tensor([[3, 1]]), score)
    model.save(tmp_path / "model.npz")
    again.load(tmp_path / "model.npz")
    assert float(again.model._scores[19]) == float(score)


def test_saving_replaces_a_file_in_one_step_and_leaves_nothing_beside_it(
    problem: MultiTargetProblem, saved: Path
) -> None:
    model = make(problem)
    model.load(saved)
    tell(model, problem, 7, 8)
    model.save(saved)
    assert list(saved.parent.iterdir()) == [saved]
    again = make(problem)
    again.load(saved)
    assert again.model.n == 24
    with pytest.raises(OSError, match="."):
        model.save(saved / "inside-a-file.npz")


def test_other_references_are_refused(problem: MultiTargetProblem, saved: Path) -> None:
    scores = problem.references.scores.clone()
    scores[0, 0] += 1e-9
    other = References(scores, problem.references.items, problem.references.models)
    model = MultiTargetBayesAME(other, n_targets=3)
    refused(saved, problem, model, "was trained on other references")


@pytest.mark.parametrize(
    "options",
    [
        {"n_targets": 2},
        {"n_targets": 4},
        {"n_latents": 2},
        {"latents": [RBFKernel(), RBFKernel(), RBFKernel()]},
        {"mean_module": ConstantMean()},
    ],
)
def test_other_targets_kernels_or_means_are_refused(
    problem: MultiTargetProblem, saved: Path, options: dict
) -> None:
    refused(saved, problem, make(problem, **options), "other kernels or targets")


def test_kernels_of_other_formulas_with_the_same_parameters_are_refused(
    problem: MultiTargetProblem, tmp_path: Path
) -> None:
    def build(*families: type) -> MultiTargetBayesAME:
        return make(problem, latents=[family() for family in families])

    model = build(ReferenceScoreKernel, ReferenceMaternKernel)
    model.save(tmp_path / "model.npz")
    build(ReferenceScoreKernel, ReferenceMaternKernel).load(tmp_path / "model.npz")
    other = build(ReferenceMaternKernel, ReferenceScoreKernel)
    refused(tmp_path / "model.npz", problem, other, "other kernels or targets")


def test_a_model_with_scores_is_refused(
    problem: MultiTargetProblem, saved: Path
) -> None:
    model = make(problem)
    tell(model, problem, 0, 3)
    refused(saved, problem, model, "expected one without scores, got 9 evaluations")


def test_a_missing_file_or_a_folder_is_no_saved_model(
    problem: MultiTargetProblem, tmp_path: Path
) -> None:
    refused(tmp_path / "none.npz", problem, make(problem), "is not a saved model")
    refused(tmp_path, problem, make(problem), "is not a saved model")


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"not a model", b"\x93NUMPY", np.arange(3)]
)
def test_other_files_are_no_saved_models(
    problem: MultiTargetProblem, tmp_path: Path, content: bytes | np.ndarray
) -> None:
    path = tmp_path / "model.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with path.open("wb") as file:
            np.save(file, content)
    refused(path, problem, make(problem), "is not a saved model")


def test_a_truncated_file_is_refused_at_every_length(
    problem: MultiTargetProblem, saved: Path
) -> None:
    content, model = saved.read_bytes(), make(problem)
    for size in range(0, len(content), 211):
        saved.write_bytes(content[:size])
        with pytest.raises(StateMismatchError, match="is not a saved model"):
            model.load(saved)
    assert model.model.n == 0


def test_a_flipped_byte_is_refused_or_changes_nothing(
    problem: MultiTargetProblem, saved: Path
) -> None:
    """Every byte of a value is behind a checksum; some of the archive's are not."""
    content, intact = saved.read_bytes(), make(problem)
    intact.load(saved)
    state, loaded = intact.model.state_dict(), 0
    model = make(problem)
    for place in range(0, len(content), 61):
        for flip in (0x01, 0x08):
            damaged = bytearray(content)
            damaged[place] ^= flip
            saved.write_bytes(damaged)
            try:
                model.load(saved)
            except StateMismatchError:
                assert model.model.n == 0
                continue
            loaded += 1
            assert model.updates == intact.updates
            assert torch.equal(model.model._scores, intact.model._scores)
            for name, value in model.model.state_dict().items():
                assert torch.equal(value, state[name]), name
            model = make(problem)
    assert loaded < 100


def rewrite(path: Path, **changes) -> None:
    """Another header in the same archive; ``None`` leaves a key out."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    meta = json.loads(str(arrays["meta"])) | changes
    meta = {key: value for key, value in meta.items() if value is not None}
    arrays["meta"] = np.array(json.dumps(meta))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "is not a saved model: format 2"),
        ({"format": None}, "is not a saved model: 'format'"),
        ({"references": None}, r"is not a saved model: without \['references'\]"),
        ({"scores": None}, r"without \['scores'\]"),
        ({"updates": None, "modules": None}, r"without \['modules', 'updates'\]"),
        ({"evaluated": [1, 1], "scores": [0.5, 0.5]}, "1 is evaluated already"),
        ({"evaluated": [48], "scores": [0.5]}, r"expected indices 0\.\.47"),
        ({"evaluated": [1, 2], "scores": [0.5]}, "expected as many, got 2 and 1"),
        ({"evaluated": [1], "scores": ["x"]}, "model.npz"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(
    problem: MultiTargetProblem, saved: Path, changes: dict, message: str
) -> None:
    rewrite(saved, **changes)
    refused(saved, problem, make(problem), message)


def test_an_archive_without_a_header_or_with_pickles_is_refused(
    problem: MultiTargetProblem, tmp_path: Path
) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, weights=np.zeros(3))
    refused(path, problem, make(problem), "is not a saved model: 'meta'")
    np.savez(path, meta=np.array([{"format": 1}], dtype=object))
    refused(path, problem, make(problem), "is not a saved model")
