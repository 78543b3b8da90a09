"""The settings and files on which a product depends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.improve.build.parts import plan_of

from manyheads.config.schema import Config
from manyheads.improve.build.inputs import _files_of_config, settings_of


def test_settings_that_do_not_change_a_product_are_not_part_of_its_key(tmp_path: Path) -> None:
    plain = settings_of(plan_of(tmp_path), "backward")
    assert settings_of(plan_of(tmp_path, "steps.backward.training.save_every=7"), "backward") == plain
    assert settings_of(plan_of(tmp_path, "steps.backward.training.seed=7"), "backward") != plain


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"dataset": "builtin:de-en"}, {}),
        ({"dataset": "builtin:de-en", "train": ["x.de", "x.en"]}, {"train": ["x.de", "x.en"]}),
        ({"dataset": "builtin:de-en", "more": [["x.de", "x.en"]], "weights": [1, 1]}, {"more.0": ["x.de", "x.en"]}),
        (
            {"train": ["x.de", "x.en"], "valid": ["v.de", "v.en"], "test": ["t.de", "t.en"]},
            {"train": ["x.de", "x.en"], "valid": ["v.de", "v.en"], "test": ["t.de", "t.en"]},
        ),
    ],
)
def test_files_of_a_configuration_are_read_also_beside_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x", "v", "t"):
        (tmp_path / f"{name}.de").touch()
        (tmp_path / f"{name}.en").touch()
    config = Config.model_validate({"data": {"source": "de", "target": "en", **data}})
    found = _files_of_config(config)
    assert {split: [path.name for path in paths] for split, paths in found.items()} == expected
