"""The way to call a model is found by trial calls and reported; defects are found in every form of call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specimens import cached_decoders, call_styles
from specimens.planted import BOS, EOS, PAD, VOCABULARY, TorchTransformer
from transformer_doctor import Report, examine
from transformer_doctor.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_length")

TIME_FIRST_REMARK = "ids are given with the time first, (S, B): with the batch first, rows influence each other"


# nn.Transformer warns of this when it is built with time first
ignore_nested_tensor_warning = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")


def examined(model: nn.Module, **options: Any) -> Report:
    torch.manual_seed(3)
    return examine(
        model, **{"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 40, **options}
    )


@pytest.mark.parametrize("encoding", ["keep", "hide", "added"])
def test_masks_are_made_as_the_model_reads_them(encoding: str) -> None:
    report = examined(call_styles.Masked(encoding))
    assert not {"sees-the-future", "no-source-padding-mask", "not-a-number"} & {*report.names}, report
    remark = report.remarks[0]
    words = {"keep": "True where a key may be seen", "added": "0 where a key may be seen, else -inf"}
    assert words.get(encoding, "True where a key is hidden") in remark
    assert "src_mask (B, 1, 1, S)" in remark
    assert "tgt_mask (B, 1, T, T)" in remark


@pytest.mark.parametrize("make", [call_styles.OptionalMasks, call_styles.ThreeMasks, call_styles.EncodeDecode])
def test_masks_are_made_for_other_signatures_too(make: Callable[[], nn.Module]) -> None:
    report = examined(make())
    assert report.names == [], report
    assert "masks were made from pad" in report.remarks[0]


@ignore_nested_tensor_warning
def test_a_time_first_model_with_seven_arguments_is_called_correctly() -> None:
    report = examined(call_styles.TorchTutorial())
    assert report.names == [], report
    assert TIME_FIRST_REMARK in report.remarks
    assert "src_mask (S, S)" in report.remarks[0]
    assert "src_padding_mask, memory_key_padding_mask (B, S), True where a key is hidden" in report.remarks[0]


def test_an_unused_mask_of_a_model_that_uses_its_other_masks_is_named() -> None:
    assert examined(call_styles.OptionalMasks(cross=False)).names == ["no-source-padding-mask"]


def test_masks_of_an_unknown_encoding_are_requested() -> None:
    class Odd(call_styles.Masked):
        """Model whose masks scale the scores: a use that no encoding explains."""

        def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
            noise = (src_mask.float().sum() + tgt_mask.float().clamp(-1, 1).sum()).sin()
            return super().forward(src, tgt, None, None) * (1 + noise)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match=r"takes 4 arguments .*src_mask, tgt_mask should hold.*masks="):
        examined(Odd())


@pytest.mark.parametrize(
    ("make", "remark"),
    [
        (call_styles.InDictionary, "ids are given in one mapping"),
        (call_styles.InTuple, "ids are given in one tuple"),
        (call_styles.TimeFirst, TIME_FIRST_REMARK),
        (call_styles.ByName, None),
    ],
)
def test_unusual_forms_of_call_and_defects_of_such_models_are_found(
    make: Callable[..., nn.Module], remark: str | None
) -> None:
    report = examined(make(9))
    assert report.names == ["no-source-padding-mask"], report
    assert [text for text in report.remarks if "tokens; longer" not in text] == ([remark] if remark else [])


@pytest.mark.parametrize(("causal", "names"), [(True, []), (False, ["sees-the-future"])])
def test_labels_are_given_to_a_language_model_that_scores_the_last_position(causal: bool, names: list[str]) -> None:
    report = examined(call_styles.LanguageModel(causal=causal))
    assert report.names == names, report
    assert "the ids are also given as targets, so that every position is scored" in report.remarks


def test_segments_are_filled_with_zeros_and_the_kind_is_requested() -> None:
    model = call_styles.Segmented()
    with pytest.raises(UsageError, match=r'say what it is: kind="encoder".*kind="decoder"'):
        examined(model)
    report = examined(model, kind="encoder")
    assert report.names == [], report
    assert "segment_info were filled with zeros" in report.remarks[0]


class AlongSecondAxis(call_styles.TorchTutorial):
    """An encoder whose positions number the rows, if ids are given with the time first."""

    def forward(self, src: Tensor) -> Tensor:  # type: ignore[override]
        positions = self.positions[: src.size(1)].transpose(0, 1)
        return self.output(self.transformer.encoder(self.source(src) * 4 + positions))


class Unordered(call_styles.TorchTutorial):
    def forward(self, src: Tensor) -> Tensor:  # type: ignore[override]
        return self.output(self.transformer.encoder(self.source(src) * 4))


@ignore_nested_tensor_warning
@pytest.mark.parametrize("make", [AlongSecondAxis, Unordered])
def test_time_first_is_not_guessed_where_the_order_of_the_tokens_would_not_matter(
    make: Callable[[], nn.Module],
) -> None:
    report = examined(make(), kind="encoder", pad=None)
    assert "rows-mixed" in report.names, report


@ignore_nested_tensor_warning
def test_a_model_that_mixes_rows_is_examined_with_texts_of_one_length() -> None:
    """nn.Transformer reads the batch axis as time: it rejects texts of two lengths and mixes rows of one length."""
    torch.manual_seed(5)
    report = examine(TorchTransformer("rows-mixed"), vocab_size=VOCABULARY, pad=PAD, bos=BOS, eos=EOS, longest=64)
    assert {"rows-mixed"} <= set(report.names) <= {"rows-mixed", "no-source-padding-mask"}, report
    assert "the batch number of src and tgt must be equal" in report.remarks[0]


class PaddedBefore(cached_decoders.Tuples):
    """Decoder whose mask may be left out; positions are counted from the mask, or may be given."""

    def forward(  # type: ignore[override]
        self, idx: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Tensor:
        real = torch.ones_like(idx) if attention_mask is None else attention_mask.long()
        seen = cached_decoders.causal(idx.size(1), idx.size(1), "") & real[:, None, None].bool()
        x = self.tokens(idx) + self.places(self.counted(real) if position_ids is None else position_ids)
        for block in self.blocks:
            q, k, v = block.project(x)
            x = block.close(x, cached_decoders.attend(q, k, v, seen))
        return self.head(self.norm(x))

    def counted(self, real: Tensor) -> Tensor:
        return (real.cumsum(1) - 1).clamp_min(0) if self.defect == "" else torch.arange(real.size(1))


class Hidden(PaddedBefore):
    def forward(self, idx: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return super().forward(idx, None if key_padding_mask is None else ~key_padding_mask)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (PaddedBefore, []),
        (Hidden, []),
        (lambda: PaddedBefore("positions are given"), []),
        (lambda: Hidden("positions cannot be given"), ["depends-on-left-padding"]),
    ],
)
def test_masks_that_may_be_left_out_are_made_where_padding_stands_before_the_text(
    make: Callable[[], nn.Module], names: list[str]
) -> None:
    assert examined(make(), left_padding=True, kind="decoder").names == names
