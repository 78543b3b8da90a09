"""The Transformer of the paper: an encoder that reads, a decoder that writes (Vaswani et al. 2017, section 3.1).

Shapes: B batch, S source length, T target length, D model width, V target vocabulary, R rows = B x K hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.model.cache import KeyValueCache
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer, KeysValues, final_norm
from manyheads.model.masks import causal_mask, padding_mask, position_ids
from manyheads.model.positions import RotaryPositions
from manyheads.model.transformer import Transformer

__all__ = ["EncoderDecoder", "EncoderDecoderStepper"]


class EncoderDecoder(Transformer):
    """The model: source ids and the target so far in, scores of each next target token out."""

    encoder_layers: Sequence[EncoderLayer]
    decoder_layers: Sequence[DecoderLayer]

    def __init__(self, config: ModelConfig, source_size: int, target_size: int, *, pad: int = 1) -> None:
        super().__init__(config, pad)
        self.source_embedding = TokenEmbedding(config, source_size, pad)
        self.target_embedding = TokenEmbedding(config, target_size, pad)
        encoder = [EncoderLayer(config) for _ in range(config.num_encoder_layers)]
        decoder = [DecoderLayer(config) for _ in range(config.num_decoder_layers)]
        self.encoder_layers = nn.ModuleList(encoder)  # type: ignore[assignment]
        self.decoder_layers = nn.ModuleList(decoder)  # type: ignore[assignment]
        self.encoder_norm, self.decoder_norm = final_norm(config), final_norm(config)
        self.output = nn.Linear(config.d_model, target_size, bias=config.bias)
        rotary = config.positions == "rotary"
        self.rotary = RotaryPositions(config.d_model // config.num_heads) if rotary else None
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        if config.bias:
            nn.init.zeros_(self.output.bias)
        self.tie()

    def tie(self) -> None:
        """Make one matrix of those that `model.tied_embeddings` names (section 3.4)."""
        if self.config.tied_embeddings != "none":
            self.output.weight = self.target_embedding.tokens.weight
        if self.config.tied_embeddings == "all":
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight

    def layers(self) -> Iterator[EncoderLayer | DecoderLayer]:
        """Those of the encoder, then those of the decoder."""
        yield from self.encoder_layers
        yield from self.decoder_layers

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: source (B, S), target_in (B, T) -> logits (B, T, V) of the token after each."""
        return self.project(self.decode(target, *self.encode(source)))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Read the source: (B, S) -> memory (B, S, D) and its padding mask (B, 1, 1, S)."""
        mask = padding_mask(source, self.pad)
        positions = position_ids(mask)
        x = self.source_embedding(source, positions, source.size(1))
        turns = self.turns(positions)
        for layer in self.encoder_layers:
            x = layer(x, mask, turns)
        return self.encoder_norm(x), mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Teacher forcing: target_in (B, T), padded at its end, and memory (B, S, D) -> hidden states (B, T, D)."""
        length = target.size(1)
        positions = torch.arange(length, device=target.device)[None]
        x = self.target_embedding(target, positions, length)
        mask = causal_mask(length, target.device)
        turns = self.turns(positions)
        for layer in self.decoder_layers:
            x = layer(x, mask, layer.keys_values(memory), memory_mask, turns)
        return self.decoder_norm(x)

    def turns(self, positions: Tensor) -> Tensor | None:
        """How queries and keys turn at positions (B or 1, S); None when positions are added instead."""
        return None if self.rotary is None else self.rotary(positions)

    def project(self, hidden: Tensor) -> Tensor:
        """Score every token: (..., D) -> logits (..., V)."""
        return self.output(hidden)


class EncoderDecoderStepper:
    """An `EncoderDecoder` in the middle of decoding, each token computed once.

    The source's keys and values are held once a sentence as long as every sentence has as many rows as the
    others and they stand together, as in a beam; else once a row.
    """

    def __init__(self, model: EncoderDecoder, source: Tensor) -> None:
        """Encode the source (B, S) and start with B rows without a past."""
        self.model = model
        memory, self.mask = model.encode(source)
        self.memory: list[KeysValues] = [layer.keys_values(memory) for layer in model.decoder_layers]
        self.past = [KeyValueCache() for _ in model.decoder_layers]
        self.sentences = torch.arange(source.size(0), device=source.device)  # (R,) the row of memory of each row

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row: (R,) -> log-probabilities of the next (R, V), float32."""
        model, place = self.model, self.past[0].length
        positions = torch.full((1, 1), place, device=tokens.device)
        x = model.target_embedding(tokens[:, None], positions, place + 1)
        turns = model.turns(positions)
        for layer, past, memory in zip(model.decoder_layers, self.past, self.memory, strict=True):
            x = layer(x, None, memory, self.mask, turns, past)
        logits = model.project(model.decoder_norm(x[:, 0]))
        return functional.log_softmax(logits.float(), -1)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, repeats allowed: (R',)."""
        for past in self.past:
            past.select(rows)
        sentences = self.sentences[rows]
        kept, counts = torch.unique_consecutive(sentences, return_counts=True)
        grouped = bool((counts == counts[0]).all())
        chosen = kept if grouped else sentences
        if not torch.equal(chosen, torch.arange(self.mask.size(0), device=rows.device)):
            self.mask = self.mask[chosen]
            self.memory = [(keys[chosen], values[chosen]) for keys, values in self.memory]
        self.sentences = torch.arange(chosen.numel(), device=rows.device)
        if grouped:
            self.sentences = self.sentences.repeat_interleave(int(counts[0]))
