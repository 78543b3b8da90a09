"""Gradients by embeddings, and exceptions of what an examination is given."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, Never

import pytest
import torch

import transformer_doctor
from specimens import unusual_models
from specimens.planted import VOCABULARY
from transformer_doctor.checks.calls import gradients
from transformer_doctor.model_adapter import Samples
from transformer_doctor.wrapping import wrap_model


def test_gradients_show_which_tokens_a_score_depends_on() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        adapter = wrap_model(
            unusual_models.NanoGPT().to(dtype), vocab_size=VOCABULARY, pad=None, bos=None, eos=None, kind="decoder",
            masks=None, time_first=False,
        )  # fmt: skip
        for position, gradient in gradients(adapter, Samples(adapter).ids(), "target", range(4)):
            assert gradient[:, : position + 1].abs().amax(-1).all()
            assert not gradient[:, position + 1 :].any()


def fail(*values: object) -> Never:
    raise LookupError("here")


GIVEN: dict[str, dict[str, Any]] = {
    "examine_attention": {"attend": fail},
    "examine_bleu": {"bleu": fail},
    "examine_collate": {"collate": fail, "vocab_size": 9, "pad": 0},
    "examine_encoding": {"encode_pair": fail, "pairs": ["ab"], "source": None, "target": None},
    "examine_evaluation": {"evaluate": fail, "batches": [1, 2, 3], "merged": 4},
    "examine_schedule": {"make": fail},
    "examine_split": {"train": map(fail, "ab"), "test": []},
    "examine_split_function": {"split": fail},
    "examine_vocabulary": {
        "tokenizer": SimpleNamespace(decode=fail), "vocab_size": 9, "train": ["ab"], "test": ["ab"],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in transformer_doctor.__all__ if name.startswith("examine_")])
def test_an_exception_of_what_an_examination_is_given_is_a_finding_at_its_line(name: str) -> None:
    (finding,) = getattr(transformer_doctor, name)(**GIVEN[name]).findings
    assert (finding.name, finding.evidence) == ("raises-an-error", "the code raised LookupError: here")
    assert str(finding.place).endswith(f"test_calls.py:{inspect.getsourcelines(fail)[1] + 1}")


def test_an_exception_of_the_examination_itself_is_raised() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        transformer_doctor.examine_split(None, None)  # type: ignore[arg-type]
