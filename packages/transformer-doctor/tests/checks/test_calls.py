"""Gradients by embeddings are zero exactly where a score does not depend on a token."""

from __future__ import annotations

import torch

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
