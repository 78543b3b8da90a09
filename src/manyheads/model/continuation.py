"""A language model in the middle of writing: beginnings are read in one pass, then each token once.

A model sees at most `window` tokens. A text that has reached them goes on after its last half, which is read anew
from position 0, as if the text began there: so every token is written after at least half a window. What a row
holds depends on its own length alone.

Shapes: R rows (texts in progress), N places held, T places computed, H heads, E head width, D model width,
V vocabulary. All rows end at the same place, and each begins where its text does: the places before are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.layers import EncoderLayer, turned

__all__ = ["DecoderOnlyStepper", "held_tokens", "window_step"]

ROOM = 16  # places for tokens to come, at the least


def window_step(window: int) -> int:
    """How many tokens of a full window are given up for those to come: half of them."""
    return max(1, window // 2)


def held_tokens(length: int, window: int) -> int:
    """How many of its last tokens a text of this length is looked at with."""
    if length <= window:
        return length
    step = window_step(window)
    return window - step + 1 + (length - window - 1) % step


class DecoderOnlyStepper:
    """See `search.interface.Stepper`.

    The first step is that after the beginnings: it does not look at its tokens, which stand for them.
    """

    def __init__(self, model: DecoderOnly, contexts: Sequence[Sequence[int]], window: int) -> None:
        """Read how each text begins.

        Args:
            model: in evaluation mode.
            contexts: ids of each row, at least one; of more than the window holds, the last ones are read.
            window: the most tokens that the model looks at, at most as many as it has positions for.
        """
        if not contexts or not all(map(len, contexts)):
            raise ValueError("a text goes on after at least one token")
        rows = [list(ids)[len(ids) - held_tokens(len(ids), window) :] for ids in contexts]
        self.model = model
        self.window = window
        self.end = max(map(len, rows))
        self.begins = torch.tensor([self.end - len(row) for row in rows])  # (R,) first place of each, on the CPU
        width = model.config.d_model // model.config.num_heads
        capacity = self.end + ROOM
        like = model.output.weight.detach()
        self.tokens = torch.full((len(rows), capacity), model.pad, device=like.device)
        for number, row in enumerate(rows):
            self.tokens[number, self.end - len(row) : self.end] = torch.tensor(row, device=like.device)
        layers = len(model.decoder_layers)
        # keys and values of all layers, (L, 2, R, H, capacity, E)
        self.store = like.new_zeros(layers, 2, len(rows), model.config.num_heads, capacity, width)
        # log-probabilities (R, V) that the first step will return
        self.first: Tensor | None = self.score(self.read(torch.arange(len(rows)), self.end))

    def step(self, tokens: Tensor) -> Tensor:
        """As `Stepper.step`."""
        if self.first is not None:
            found, self.first = self.first, None
            return found
        self.give_up_halves()
        if self.end == self.tokens.size(1):
            self.make_room()
        self.tokens[:, self.end] = tokens
        self.end += 1
        return self.score(self.compute(None, 1, self.end))

    def select(self, rows: Tensor) -> None:
        """As `Stepper.select`."""
        self.begins = self.begins[rows.cpu()]
        self.tokens = self.tokens.index_select(0, rows)
        self.store = self.store.index_select(2, rows)
        if self.first is not None:
            self.first = self.first.index_select(0, rows)

    def score(self, hidden: Tensor) -> Tensor:
        """(R, D) -> log-probabilities (R, V), float32."""
        return functional.log_softmax(self.model.output(hidden).float(), -1)

    def give_up_halves(self) -> None:
        """Let the rows that fill the window begin with their last half."""
        full = (self.end - self.begins == self.window).nonzero()[:, 0]
        if len(full):
            kept = self.window - window_step(self.window)
            self.begins[full] = self.end - kept
            if kept:
                self.read(full, kept)

    def make_room(self) -> None:
        """Leave out the places where every row is empty, and double the rest."""
        first = int(self.begins.min())
        self.begins -= first
        rest = self.end - first
        room = max(ROOM, rest)
        self.tokens = functional.pad(self.tokens[:, first : self.end], (0, room), value=self.model.pad)
        self.store = functional.pad(self.store[:, :, :, :, first : self.end], (0, 0, 0, room))
        self.end = rest

    def read(self, rows: Tensor, places: int) -> Tensor:
        """Compute the last places of some rows, each from its beginning on; hidden states after them (R', D)."""
        return self.compute(rows.to(self.tokens.device), places, places)

    def compute(self, rows: Tensor | None, places: int, seen: int) -> Tensor:
        """Compute the last T places of rows, all unless given, each from what it may see of the last N.

        Returns:
            Hidden states of the last place (R', D).
        """
        model, end, device = self.model, self.end, self.tokens.device
        begins = self.begins if rows is None else self.begins[rows.cpu()]
        begins = begins.to(device)
        ids = self.tokens[:, end - places : end]
        queries = torch.arange(end - places, end, device=device)
        positions = (queries - begins[:, None]).clamp_min(0)  # (R', T)
        x = model.embedding(ids if rows is None else ids[rows], positions, self.window)
        turns = None if model.rotary is None else model.rotary(positions)
        mask = visible(begins, queries, torch.arange(end - seen, end, device=device))
        for number, layer in enumerate(model.decoder_layers):
            x = self.through(layer, number, x, mask, turns, rows, seen)
        return model.decoder_norm(x[:, -1])

    def through(
        self,
        layer: EncoderLayer,
        number: int,
        x: Tensor,
        mask: Tensor,
        turns: Tensor | None,
        rows: Tensor | None,
        seen: int,
    ) -> Tensor:
        """One layer: (R', T, D) -> (R', T, D); its keys and values are stored."""
        places = slice(self.end - x.size(1), self.end)

        def attend(x: Tensor) -> Tensor:
            query, key, value = layer.self_attention.queries_keys_values(x)
            query, key = turned(query, key, turns)
            store = self.store[number]
            if rows is None:
                store[0, :, :, places], store[1, :, :, places] = key, value
                key, value = store[:, :, :, self.end - seen : self.end]
            else:
                store[0, rows, :, places], store[1, rows, :, places] = key, value
            return layer.self_attention.attend(query, key, value, mask)

        return layer.around_feed_forward(layer.around_attention(x, attend), layer.feed_forward)


def visible(begins: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Which places may be seen: those of the text up to one's own; an empty place sees itself.

    Args:
        begins: first place of each row (R,).
        queries: places that look (T,).
        keys: places that are looked at (N,).

    Returns:
        A mask (R, 1, T, N).
    """
    before = keys <= queries[:, None]  # (T, N)
    itself = keys == queries[:, None]
    of_text = keys >= begins[:, None]  # (R, N)
    return ((before & of_text[:, None]) | itself)[:, None]
