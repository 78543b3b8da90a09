"""Names of the last version are found in the module that held them, and warn."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("manyheads.checkpoint", "Checkpoint"),
        ("manyheads.data.labelled", "split_texts"),
        ("manyheads.data.sampler", "fixed_batches"),
        ("manyheads.text.subwords", "possible_size"),
        ("manyheads.tasks.translation", "SearchOptions"),
        ("manyheads.tasks.translation", "Translator"),
        ("manyheads.text.tokenizer", "train_tokenizers"),
    ],
)
def test_a_name_that_a_module_held_warns_and_is_the_same(module: str, name: str) -> None:
    former = importlib.import_module(module)
    with pytest.warns(FutureWarning, match=f"{module}.{name} is now in manyheads") as caught:
        found = getattr(former, name)
    assert found.__module__ in str(caught[0].message)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        former.Nothing  # noqa: B018
