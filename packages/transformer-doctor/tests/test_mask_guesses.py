"""Masks of every style hide the right keys, in their encoding and layout."""

from __future__ import annotations

import torch

from transformer_doctor.mask_guesses import MaskStyle, refined_styles

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


def test_refined_styles_change_the_side_that_failed() -> None:
    style = MaskStyle()
    assert {each.target for each in refined_styles(style, PAIR, ["source"])} == {style.target}  # type: ignore[arg-type]
    assert {each.source for each in refined_styles(style, PAIR, ["target"])} == {style.source}  # type: ignore[arg-type]
    assert not list(refined_styles(style, {"mask": "target mask"}, ["target"]))
