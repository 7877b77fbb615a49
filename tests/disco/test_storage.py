from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from populations import population

from gp_eval.disco import DiscoOptions, DiscoPlan, predictor_names
from gp_eval.disco.storage import _checksum
from gp_eval.errors import StateMismatchError

EVERYONE = population(40)
REFERENCES = EVERYONE.subset(models=EVERYONE.models[:30])
LATER = EVERYONE.subset(models=EVERYONE.models[30:])


def plan(**options: object) -> DiscoPlan:
    return DiscoPlan.fit(REFERENCES, DiscoOptions(k=10, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        *({"predictor": name} for name in predictor_names()),
        {"choice": "random", "predictor": "mean"},
        {"temperature": True, "pca": None},
        {"signature": "scores", "guiding": 7, "stratify": True, "seed": 4},
    ],
    ids=str,
)
def test_a_loaded_plan_predicts_the_same(
    options: dict[str, object], tmp_path: Path
) -> None:
    made = plan(**options)
    made.save(tmp_path / "plan")
    loaded = DiscoPlan.load(tmp_path / "plan")
    first, second = made.predict(LATER), loaded.predict(LATER)
    assert first.mean.tolist() == second.mean.tolist()
    assert (first.std is None) == (second.std is None)
    if first.std is not None and second.std is not None:
        assert first.std.tolist() == second.std.tolist()
    for name in ("options", "items", "n_items", "models", "fingerprint", "n_classes"):
        assert getattr(loaded, name) == getattr(made, name)
    assert loaded.fingerprint == REFERENCES.fingerprint


def test_a_folder_holds_json_and_plain_arrays_only(tmp_path: Path) -> None:
    plan(predictor="random-forest").save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arrays.npz", "plan.json"]
    record = json.loads((tmp_path / "plan.json").read_text())
    assert len(record["items"]) == 10
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
        assert "predictor.threshold" in arrays.files


def test_the_same_plan_is_written_over(tmp_path: Path) -> None:
    plan().save(tmp_path)
    plan(predictor="ridge").save(tmp_path)
    assert DiscoPlan.load(tmp_path).options.predictor == "ridge"


def rewrite(folder: Path, change: dict[str, object]) -> None:
    """Change fields of ``plan.json``, with the checksum that goes with them."""
    path = folder / "plan.json"
    fields = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({**fields, "checksum": _checksum(fields)}))


def test_other_items_than_were_saved_are_damage(tmp_path: Path) -> None:
    plan().save(tmp_path)
    path = tmp_path / "plan.json"
    fields = json.loads(path.read_text())
    for items in (fields["items"][::-1], fields["items"][:-1]):
        path.write_text(json.dumps({**fields, "items": items}))
        with pytest.raises(StateMismatchError, match="checksum vouches for"):
            DiscoPlan.load(tmp_path)


def test_damage_is_found(tmp_path: Path) -> None:
    with pytest.raises(StateMismatchError, match=r"has no readable plan.json"):
        DiscoPlan.load(tmp_path)
    plan(predictor="ridge").save(tmp_path)
    arrays = tmp_path / "arrays.npz"
    content = arrays.read_bytes()
    arrays.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StateMismatchError, match="not what plan.json vouches for"):
        DiscoPlan.load(tmp_path)
    arrays.write_bytes(content)
    rewrite(tmp_path, {"predictor": {"intercept": 0.6}})
    with pytest.raises(
        StateMismatchError, match="predictions of the references differ"
    ):
        DiscoPlan.load(tmp_path)
    rewrite(tmp_path, {"format": 2})
    with pytest.raises(StateMismatchError, match="format: expected 1, got 2"):
        DiscoPlan.load(tmp_path)
    rewrite(tmp_path, {"n_items": "many"})
    with pytest.raises(StateMismatchError, match=r"plan.json.*is damaged: n_items"):
        DiscoPlan.load(tmp_path)
    arrays.unlink()
    with pytest.raises(StateMismatchError, match=r"has no readable arrays.npz"):
        DiscoPlan.load(tmp_path)


def test_a_map_of_umap_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in whose features depend on the seed."""

    class Stub:
        def __init__(self, n_components: int, random_state: int, n_jobs: int) -> None:
            self.shift, self.size = random_state, n_components

        def fit_transform(self, values: np.ndarray) -> np.ndarray:
            return values[:, : self.size] + self.shift

        transform = fit_transform

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=Stub))
    made = plan(umap=3, seed=2, predictor="ridge")
    made.save(tmp_path)
    loaded = DiscoPlan.load(tmp_path)
    assert loaded.predict(LATER).mean.tolist() == made.predict(LATER).mean.tolist()
    rewrite(
        tmp_path,
        {"options": {**made.options.model_dump(), "seed": 3}},
    )
    with pytest.raises(
        StateMismatchError, match="predictions of the references differ"
    ):
        DiscoPlan.load(tmp_path).predict(LATER)
