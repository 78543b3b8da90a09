"""The shared parts of the museum's programs are sound: only the programs hold defects."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.museum.base import (
    BOS,
    EOS,
    PAD,
    Encoder,
    LanguageModel,
    Sinusoidal,
    Translator,
    fit,
    pad_rows,
)


class Causal(LanguageModel):
    def mask_scores(self, scores: Tensor, target: Tensor) -> Tensor:
        later = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        return scores.masked_fill(later, float("-inf"))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested:UserWarning")
def test_the_doctor_finds_nothing_in_the_shared_models() -> None:
    assert not examine(Translator(13), vocab_size=13, pad=PAD, bos=BOS, eos=EOS).findings
    assert not examine(Causal(13, 16), vocab_size=13, pad=PAD, bos=BOS, kind="decoder").findings
    assert not examine(Encoder(13, 16, Sinusoidal(16)), vocab_size=13, kind="encoder", longest=64).findings


def test_rows_are_padded_to_the_longest() -> None:
    assert pad_rows([[3], [4, 5]]).tolist() == [[3, PAD], [4, 5]]
    assert pad_rows([]).numel() == 0


def test_a_fit_lowers_the_loss_and_yields_three_of_its_values() -> None:
    model = nn.Linear(1, 1)
    lines = list(fit(model, lambda: (model(torch.ones(1, 1)) - 2).square().sum()))
    assert [line.split()[1] for line in lines] == ["1", "50", "100"]
    assert float(lines[-1].split()[-1]) < float(lines[0].split()[-1])
