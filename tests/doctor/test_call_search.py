"""The way to call a model is found by trying, and told; a defect is found whatever the way is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.doctor import called
from tests.doctor.planted import BOS, EOS, PAD, VOCABULARY, TorchTransformer
from torch import Tensor, nn

from manyheads.doctor import Report, examine
from manyheads.errors import UsageError

FIRST = "ids are given with the time first, (S, B): with the batch first, rows influence each other"


# nn.Transformer says so when it is made with the time first
IN_TIME = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")


def examined(model: nn.Module, **options: Any) -> Report:
    torch.manual_seed(3)
    return examine(
        model, **{"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 40, **options}
    )


@pytest.mark.parametrize("encoding", ["keep", "hide", "added", "multiplied"])
def test_masks_are_made_as_the_model_reads_them(encoding: str) -> None:
    torch.manual_seed(3)
    report = examined(called.Masked(encoding))
    assert not {"sees-the-future", "no-source-padding-mask", "not-a-number"} & {*report.names}, report
    (remark,) = report.remarks
    words = {"keep": "True where a key may be seen", "added": "0 where a key may be seen, else -inf"}
    assert words.get(encoding, "True where a key is hidden") in remark
    assert "src_mask (B, 1, 1, S)" in remark
    assert "tgt_mask (B, 1, T, T)" in remark


@pytest.mark.parametrize("make", [called.OptionalMasks, called.ThreeMasks, called.EncodeDecode])
def test_masks_of_other_signatures_are_made_too(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(3)
    report = examined(make())
    assert report.names == [], report
    assert "masks were made from pad" in report.remarks[0]


@IN_TIME
def test_time_first_and_seven_arguments_are_found() -> None:
    torch.manual_seed(3)
    report = examined(called.TorchTutorial())
    assert report.names == [], report
    assert FIRST in report.remarks
    assert "src_mask (S, S)" in report.remarks[0]
    assert "src_padding_mask, memory_key_padding_mask (B, S), True where a key is hidden" in report.remarks[0]


@pytest.mark.parametrize("make", [called.Masked, called.OptionalMasks])
def test_a_mask_that_is_not_used_is_named_where_all_others_are(make: Callable[..., nn.Module]) -> None:
    torch.manual_seed(3)
    assert examined(make(cross=False)).names == ["no-source-padding-mask"]


def test_masks_that_work_in_no_known_way_are_asked_for() -> None:
    class Odd(called.Masked):
        """Masks whose hidden keys are those of weight 7: no usual way to write them."""

        def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
            noise = (src_mask.float().sum() + tgt_mask.float().clamp(-1, 1).sum()).sin()
            return super().forward(src, tgt, None, None) * (1 + noise)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match=r"takes 4 arguments .*src_mask, tgt_mask should hold.*masks="):
        examined(Odd())


@pytest.mark.parametrize(
    ("make", "remark"),
    [
        (called.InDictionary, "ids are given in one mapping"),
        (called.InObject, "ids are given in one mapping"),
        (called.InTuple, "ids are given in one tuple"),
        (called.TimeFirst, FIRST),
        (called.GivesDataclass, None),
        (called.TargetFirst, None),
        (called.ByName, None),
    ],
)
def test_unusual_calls_are_found_and_defects_behind_them(
    make: Callable[..., nn.Module], remark: str | None
) -> None:
    torch.manual_seed(3)
    report = examined(make())
    assert report.names == [], report
    assert list(report.remarks) == ([remark] if remark else [])
    torch.manual_seed(3)
    assert examined(make(9)).names == ["no-source-padding-mask"]


@pytest.mark.parametrize(("causal", "names"), [(True, []), (False, ["sees-the-future"])])
def test_labels_are_given_to_a_language_model_that_scores_the_last_position(causal: bool, names: list[str]) -> None:
    torch.manual_seed(3)
    report = examined(called.LanguageModel(causal=causal))
    assert report.names == names, report
    assert "the ids are also given as targets, so that every position is scored" in report.remarks


def test_segments_are_filled_and_the_kind_is_asked_for() -> None:
    torch.manual_seed(3)
    model = called.Segmented()
    with pytest.raises(UsageError, match=r'say what it is: kind="encoder".*kind="decoder"'):
        examined(model)
    report = examined(model, kind="encoder")
    assert report.names == [], report
    assert "segment_info were filled with zeros" in report.remarks[0]


@IN_TIME
def test_the_batch_taken_for_the_time_by_mistake_is_no_guess() -> None:
    """Positions along the second axis: with the time first they would number the rows."""

    class Mistaken(called.TorchTutorial):
        def forward(self, src: Tensor) -> Tensor:  # type: ignore[override]
            positions = self.positions[: src.size(1)].transpose(0, 1)
            return self.output(self.transformer.encoder(self.source(src) * 4 + positions))

    torch.manual_seed(3)
    report = examined(Mistaken(), kind="encoder", pad=None)
    assert "rows-mixed" in report.names, report


@IN_TIME
def test_without_positions_the_batch_taken_for_the_time_is_no_guess_either() -> None:
    class Unordered(called.TorchTutorial):
        def forward(self, src: Tensor) -> Tensor:  # type: ignore[override]
            return self.output(self.transformer.encoder(self.source(src) * 4))

    torch.manual_seed(3)
    report = examined(Unordered(), kind="encoder", pad=None)
    assert "rows-mixed" in report.names, report


@IN_TIME
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_texts_of_one_length_with_the_batch_taken_for_the_time_are_examined_so(dtype: torch.dtype) -> None:
    """nn.Transformer refuses texts of two lengths there; with the time first it takes them, and mixes the rows."""
    torch.manual_seed(5)
    model = TorchTransformer("rows-mixed").to(dtype)
    report = examine(model, vocab_size=VOCABULARY, pad=PAD, bos=BOS, eos=EOS, longest=64)
    assert {"rows-mixed"} <= set(report.names) <= {"rows-mixed", "no-source-padding-mask"}, report
    assert "the batch number of src and tgt must be equal" in report.remarks[0]
