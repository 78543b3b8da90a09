"""The model of a run is built, and its weights are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.checkpoint.test_directory import (
    begin_run,
    equal_tensors,
    leftover_drafts,
    make_config,
    make_model,
    named_tensors,
)

from manyheads.tensors.models import load_model


@pytest.mark.parametrize("tied", ["all", "decoder", "none"])
def test_published_weights_restore_the_model(tmp_path: Path, tied: str) -> None:
    config = make_config(model={"tied_embeddings": tied})
    run, model = begin_run(tmp_path, config), make_model(config)
    run.publish(named_tensors(model))
    loaded = load_model(run, config, run.tokenizers(config))
    assert equal_tensors(named_tensors(loaded), named_tensors(model))
    assert not loaded.training
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    assert torch.equal(loaded(source, target), model.eval()(source, target))
    assert leftover_drafts(tmp_path) == []
