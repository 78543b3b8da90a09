"""Vocabulary sizes and marks are guessed where code states them, and not where statements contradict."""

from __future__ import annotations

from types import SimpleNamespace

from torch import Tensor, nn

from specimens.planted import BOS, EOS, PAD, Transformer
from transformer_doctor import examine
from transformer_doctor.guesses import _guess_marks, safe_size


class Sized(nn.Module):
    """Two vocabularies, and marks in attributes."""

    def __init__(self, **attributes: object) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(31, 16), nn.Embedding(37, 16)
        self.segments, self.output = nn.Embedding(2, 16), nn.Linear(16, 37)
        vars(self).update(attributes)

    def forward(self, src: Tensor, trg: Tensor) -> Tensor:
        return self.output(self.target(trg) + self.source(src).mean(1, keepdim=True))


def test_sizes_are_those_of_the_embeddings_that_are_looked_up() -> None:
    report = examine(Sized(src_pad_idx=3, sos_id=5, longest=0), longest=40)
    assert "vocab_size = (31, 37), guessed from the embeddings that are looked up" in report.remarks
    assert "pad = 3, guessed from src_pad_idx" in report.remarks
    assert "bos = 5, guessed from sos_id" in report.remarks
    assert safe_size(Sized()) == 31


def test_marks_are_guessed_from_configurations_and_constants_too() -> None:
    assert PAD == 0
    marks = _guess_marks(None, Sized(config=SimpleNamespace(pad_token_id=7), args={"eos_idx": 2}), 31)
    assert marks == {"pad": (7, "pad_token_id"), "eos": (2, "eos_idx"), "bos": (BOS, "BOS")}
    assert _guess_marks(test_marks_are_guessed_from_configurations_and_constants_too, None, 31) == {
        "pad": (PAD, "PAD"), "bos": (BOS, "BOS"), "eos": (EOS, "EOS")
    }  # fmt: skip


def test_contradicting_names_and_numbers_that_are_no_ids_give_no_guess() -> None:
    assert "pad" not in _guess_marks(None, Sized(src_pad_idx=1, trg_pad_idx=2), 31)
    assert _guess_marks(None, Sized(bos_id=99, eos=5, start=7), 31) == {"bos": (BOS, "BOS"), "eos": (EOS, "EOS")}


def is_real(ids: Tensor) -> Tensor:
    return (ids != PAD)[..., None]


class Pooled(Sized):
    """Model that uses the constant PAD in a function that it calls."""

    def forward(self, src: Tensor, trg: Tensor) -> Tensor:
        return self.output(self.target(trg) + (self.source(src) * is_real(src)).sum(1, keepdim=True))


def test_a_constant_is_the_padding_of_a_model_only_where_the_model_uses_it() -> None:
    report = examine(Sized(), longest=40)
    assert not {"no-source-padding-mask", "depends-on-the-batch"} & set(report.names)
    remark = "pad was not guessed from PAD, which the model does not use: if texts are padded, give pad=0"
    assert remark in report.remarks
    assert _guess_marks(None, Pooled(), 31)["pad"] == (PAD, "PAD")
    padded = Sized()
    padded.source = nn.Embedding(31, 16, padding_idx=PAD)
    assert _guess_marks(None, padded, 31)["pad"] == (PAD, "padding_idx")


def test_no_mark_is_guessed_when_the_vocabulary_size_is_given() -> None:
    report = examine(Transformer(9), vocab_size=23, longest=40)
    assert "guessed" not in " ".join(report.remarks)
    assert "no-source-padding-mask" not in report.names
