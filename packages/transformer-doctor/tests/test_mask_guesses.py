"""Masks of every style hide the right keys, in their encoding and layout."""

from __future__ import annotations

import torch

from transformer_doctor.mask_guesses import MaskStyle, mask_styles, refined_styles

REAL = {
    "source": torch.tensor([[True, True, True], [True, True, False]]),
    "target": torch.tensor([[True] * 5, [True] * 4 + [False]]),
}
PAIR = {"src_mask": "source mask", "tgt_mask": "target mask"}


def test_a_mask_of_the_target_hides_later_positions_and_padding() -> None:
    mask = MaskStyle(target=("keep", "heads")).make("tgt_mask", "target mask", PAIR, REAL)
    assert mask.shape == (2, 1, 5, 5)
    assert torch.equal(mask[0, 0], torch.ones(5, 5, dtype=torch.bool).tril())
    assert not mask[1, 0, 4, 4]
    causal = MaskStyle(target=("hide", "causal")).make("tgt_mask", "target mask", PAIR, REAL)
    assert torch.equal(causal, torch.ones(5, 5, dtype=torch.bool).triu(1))


def test_all_encodings_hide_the_same_keys() -> None:
    made = {
        encoding: MaskStyle(source=(encoding, "flat")).make("src_mask", "source mask", PAIR, REAL)
        for encoding in ("keep", "hide", "keep as number", "hide as number", "added")
    }
    assert torch.equal(made["keep"], REAL["source"])
    assert torch.equal(made["hide"], ~REAL["source"])
    assert torch.equal(made["keep as number"], REAL["source"].float())
    assert torch.equal(made["hide as number"], (~REAL["source"]).float())
    assert torch.equal(made["added"], torch.zeros(2, 3).masked_fill(~REAL["source"], -torch.inf))


def test_a_mask_beside_a_padding_mask_hides_no_padding() -> None:
    masks = {**PAIR, "src_padding_mask": "source mask", "tgt_padding_mask": "target mask"}
    style = next(mask_styles(masks))  # type: ignore[arg-type]
    assert style.source == ("hide", "flat")
    assert not style.make("src_mask", "source mask", masks, REAL).any()  # type: ignore[arg-type]
    assert style.make("tgt_mask", "target mask", masks, REAL).shape == (5, 5)  # type: ignore[arg-type]
    assert torch.equal(style.make("tgt_padding_mask", "target mask", masks, REAL), ~REAL["target"])  # type: ignore[arg-type]


def test_a_style_is_described_by_axes_and_values() -> None:
    text = MaskStyle(("hide", "queries"), ("added", "causal")).describe(PAIR)  # type: ignore[arg-type]
    assert (
        text
        == "src_mask (B, 1, S), True where a key is hidden; tgt_mask (T, T), 0 where a key may be seen, else -inf"
    )


def test_refined_styles_change_the_side_that_failed() -> None:
    style = MaskStyle()
    assert {each.target for each in refined_styles(style, PAIR, ["source"])} == {style.target}  # type: ignore[arg-type]
    assert {each.source for each in refined_styles(style, PAIR, ["target"])} == {style.source}  # type: ignore[arg-type]
    assert not list(refined_styles(style, {"mask": "target mask"}, ["target"]))
