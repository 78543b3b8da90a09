"""Make the masks and lengths that a model takes as arguments, in each of the usual ways.

Shapes: B batch, S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from transformer_doctor.signatures import Role, words_of

Encoding = Literal["keep", "hide", "keep as number", "hide as number", "added"]
Layout = Literal["heads", "queries", "flat", "causal"]
_ENCODINGS: tuple[Encoding, ...] = ("keep", "hide", "keep as number", "hide as number", "added")
# Layouts of source masks and of target masks: heads (B, 1, 1, S) and (B, 1, T, T), queries (B, 1, S) and (B, T, T),
# flat (B, S) and (B, T), causal (T, T).
_LAYOUTS: tuple[tuple[Layout, Layout], ...] = (
    ("heads", "heads"), ("queries", "queries"), ("flat", "causal"), ("flat", "flat"), ("heads", "causal"),
    ("queries", "causal"),
)  # fmt: skip
_SOURCE_LAYOUTS: tuple[Layout, ...] = ("heads", "queries", "flat")
_IN_WORDS = {
    "keep": "True where a key may be seen",
    "hide": "True where a key is hidden",
    "keep as number": "1.0 where a key may be seen",
    "hide as number": "1.0 where a key is hidden",
    "added": "0 where a key may be seen, else -inf",
}


@dataclass(frozen=True)
class MaskStyle:
    """One way to write masks.

    Attributes:
        source, target: encoding and layout of the masks of each side; cross-attention uses those of the source.
        of_cross: whether a padding mask named after the decoder hides keys of the source, for cross-attention.
    """

    source: tuple[Encoding, Layout] = ("keep", "heads")
    target: tuple[Encoding, Layout] = ("keep", "heads")
    of_cross: bool = False

    def make(self, name: str, role: Role, masks: Mapping[str, Role], real: Mapping[str, Tensor]) -> Tensor:
        """Return a mask.

        Args:
            name: argument that the mask is for.
            role: role of the argument.
            masks: all arguments that are masks, with their roles.
            real: by side, True where a token is no padding: (B, S) and (B, T).
        """
        padding = _is_padding(name)
        if self.of_cross and padding and role == "target mask":
            role = "cross mask"
        side = "target" if role == "target mask" else "source"
        encoding, layout = self.target if side == "target" else self.source
        others_of_role = [other for other, other_role in masks.items() if other != name and other_role == role]
        shared = not padding and any(_is_padding(other) for other in others_of_role) and not self.of_cross
        if shared and side == "source":  # padding has a separate mask: this one hides nothing
            queries = real["target" if role == "cross mask" else "source"].size(1)
            return _encode(torch.ones(queries, real["source"].size(1), dtype=torch.bool), encoding)
        if side == "source" or padding:
            return _encode(_with_axes(real[side], layout), encoding)
        length = real[side].size(1)
        causal = torch.ones(length, length, dtype=torch.bool, device=real[side].device).tril()
        if shared or layout == "causal":
            return _encode(causal, encoding)
        if layout == "flat":
            return _encode(real[side], encoding)
        return _encode(_with_axes(real[side], layout) & causal, encoding)

    def describe(self, masks: Mapping[str, Role]) -> str:
        """Return a description of the masks: their names, axes, and the meaning of their values."""
        batch, source, target = 2, 3, 5
        axes = {1: "1", batch: "B", source: "S", target: "T"}
        real = {
            "source": torch.ones(batch, source, dtype=torch.bool),
            "target": torch.ones(batch, target, dtype=torch.bool),
        }
        clauses: dict[str, list[str]] = {}
        for name, role in masks.items():
            shape = ", ".join(axes[size] for size in self.make(name, role, masks, real).shape)
            encoding = self.target[0] if role == "target mask" else self.source[0]
            clauses.setdefault(f"({shape}), {_IN_WORDS[encoding]}", []).append(name)
        return "; ".join(f"{', '.join(names)} {clause}" for clause, names in clauses.items())


def _is_padding(name: str) -> bool:
    return any(word.startswith("pad") or word == "key" for word in words_of(name))


def _with_axes(real: Tensor, layout: Layout) -> Tensor:
    return {"heads": real[:, None, None], "queries": real[:, None]}.get(layout, real)


def _encode(keep: Tensor, encoding: Encoding) -> Tensor:
    if encoding == "added":
        return torch.zeros(keep.shape, device=keep.device).masked_fill(~keep, -torch.inf)
    mask = ~keep if encoding.startswith("hide") else keep
    return mask.float() if encoding.endswith("number") else mask


def mask_styles(masks: Mapping[str, Role]) -> Iterator[MaskStyle]:
    """Yield the usual ways to write the masks of a model, that of nn.Transformer first if the names are its own."""
    if not masks:
        yield MaskStyle()
        return
    layouts, encodings = list(_LAYOUTS), list(_ENCODINGS)
    if any(_is_padding(name) and "key" in words_of(name) for name in masks) or (
        sum(map(_is_padding, masks)) not in (0, len(masks))
    ):
        layouts.sort(key=lambda layout: layout != ("flat", "causal"))
        encodings.sort(key=lambda encoding: encoding != "hide")
    of_cross = (False, True) if sum(map(_is_padding, masks)) > 1 else (False,)
    if not any(role == "target mask" for role in masks.values()):
        layouts = [pair for pair in layouts if pair[0] == pair[1]]
    for cross, (source, target), encoding in product(of_cross, layouts, encodings):
        yield MaskStyle((encoding, source), (encoding, target), cross)


def refined_styles(style: MaskStyle, masks: Mapping[str, Role], sides: Sequence[str]) -> Iterator[MaskStyle]:
    """Yield the styles that differ from a style in the masks of one of the sides."""
    roles = set(masks.values())
    if not (roles & {"source mask", "cross mask"} and "target mask" in roles):
        return
    if "source" in sides:
        for encoding, layout in product(_ENCODINGS, _SOURCE_LAYOUTS):
            yield replace(style, source=(encoding, layout))
    if "target" in sides:
        for encoding, layout in product(_ENCODINGS, (*_SOURCE_LAYOUTS, "causal")):
            yield replace(style, target=(encoding, layout))
