"""Training speed of the same model, data, batches and precision: manyheads, torch.nn.Transformer, MarianMT.

    python benchmarks/train_peers.py --root data/multi30k [--precision fp32|bf16] [--seconds 60] [--json]

Multi30k German-English, joint BPE 8k, width 256, feed-forward 1024, 4 heads, 3+3 layers, 4096-token batches,
label smoothing 0.1, Adam, clipping at 1; dropout 0.1 on the residual stream. All three see the same tensors in
the same order, some updates each in turn, so that what else the machine does falls on all alike. Counted are
target tokens that are no padding. MarianMT needs: pip install transformers
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import Config, DataConfig, ModelConfig, TrainingConfig
from manyheads.data.batch import Batch, make_batch
from manyheads.data.corpus import read_pairs
from manyheads.data.sampler import Sampler
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.positions import sinusoids
from manyheads.text.tokenizer import BOS, EOS, PAD, train_tokenizers
from manyheads.training.memory import keep_freed_memory
from manyheads.training.objective import translation_loss
from manyheads.training.precision import autocast

SETTINGS = ModelConfig()  # the defaults are the model of this comparison
SMOOTHING = 0.1
TURN = 4  # updates a contender makes before the next one's turn


class Contender(Protocol):
    """A model that can tell its loss, summed over target tokens."""

    name: str
    module: nn.Module

    def loss(self, batch: Batch) -> Tensor: ...


class Manyheads:
    name = "manyheads"

    def __init__(self, size: int) -> None:
        self.module = EncoderDecoder(SETTINGS, size, size)

    def loss(self, batch: Batch) -> Tensor:
        return translation_loss(self.module, batch, SMOOTHING)[0]


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, as its documentation's translation tutorial puts them together."""

    name = "torch.nn.Transformer"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, SETTINGS.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=SETTINGS.d_model**-0.5)
        self.register_buffer("positions", sinusoids(256, SETTINGS.d_model))
        self.transformer = nn.Transformer(
            SETTINGS.d_model,
            SETTINGS.num_heads,
            SETTINGS.num_encoder_layers,
            SETTINGS.num_decoder_layers,
            SETTINGS.d_ff,
            SETTINGS.dropout,
            batch_first=True,
            norm_first=True,
        )
        self.output = nn.Linear(SETTINGS.d_model, size)
        self.output.weight = self.embedding.weight

    @property
    def module(self) -> nn.Module:
        return self

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * SETTINGS.d_model**0.5 + self.positions[: ids.size(1)]
        return functional.dropout(x, SETTINGS.dropout, self.training)

    def loss(self, batch: Batch) -> Tensor:
        padded = batch.source == PAD
        hidden = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(batch.target_in.size(1), dtype=torch.bool),
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
            tgt_is_causal=True,
        )
        return functional.cross_entropy(
            self.output(hidden).flatten(0, 1).float(),
            batch.target_out.flatten(),
            ignore_index=PAD,
            label_smoothing=SMOOTHING,
            reduction="sum",
        )


class Marian:
    name = "transformers MarianMT"

    def __init__(self, size: int) -> None:
        from transformers import MarianConfig, MarianMTModel

        self.module = MarianMTModel(
            MarianConfig(
                vocab_size=size,
                d_model=SETTINGS.d_model,
                encoder_ffn_dim=SETTINGS.d_ff,
                decoder_ffn_dim=SETTINGS.d_ff,
                encoder_layers=SETTINGS.num_encoder_layers,
                decoder_layers=SETTINGS.num_decoder_layers,
                encoder_attention_heads=SETTINGS.num_heads,
                decoder_attention_heads=SETTINGS.num_heads,
                activation_function="relu",
                dropout=SETTINGS.dropout,
                scale_embedding=True,
                pad_token_id=PAD,
                bos_token_id=BOS,
                eos_token_id=EOS,
                forced_eos_token_id=EOS,
                decoder_start_token_id=BOS,
                max_position_embeddings=256,
            )
        )

    def loss(self, batch: Batch) -> Tensor:
        logits = self.module(
            input_ids=batch.source,
            attention_mask=batch.source != PAD,
            decoder_input_ids=batch.target_in,
            use_cache=False,
        ).logits
        return functional.cross_entropy(
            logits.flatten(0, 1).float(),
            batch.target_out.flatten(),
            ignore_index=PAD,
            label_smoothing=SMOOTHING,
            reduction="sum",
        )


class Lane:
    """One contender, its optimiser, and the speed of each of its turns."""

    def __init__(self, contender: Contender, precision: Any) -> None:
        self.contender = contender
        self.precision = precision
        contender.module.train()
        self.optimizer = torch.optim.Adam(contender.module.parameters(), 1e-3, (0.9, 0.98), fused=True)
        self.speeds: list[float] = []

    def turn(self, batches: list[Batch]) -> None:
        start, tokens = time.perf_counter(), 0
        for batch in batches:
            with autocast(torch.device("cpu"), self.precision):
                loss = self.contender.loss(batch)
            (loss / batch.target_tokens).backward()
            nn.utils.clip_grad_norm_(self.contender.module.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            tokens += batch.target_tokens
        self.speeds.append(tokens / (time.perf_counter() - start))


def load_batches(root: str) -> tuple[list[Batch], int]:
    """Tokenised batches of one epoch and the vocabulary's size."""
    config = Config(data=DataConfig(root=root, source="de", target="en", valid="val"), training=TrainingConfig())
    pairs = list(read_pairs(config.data, "train"))
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    tokenizers = train_tokenizers(config.tokenizer, sources, targets, "de", "en")
    source, target = tokenizers.source.encode(sources), tokenizers.target.encode(targets)
    lengths = [np.array([len(row) + 1 for row in rows], dtype=np.int64) for rows in (source, target)]
    sampler = Sampler(*lengths, batch_tokens=config.training.batch_tokens, seed=1)
    batches = [
        make_batch([source[row] for row in rows], [target[row] for row in rows], pad=PAD, bos=BOS, eos=EOS)
        for rows in sampler.epoch(0)
    ]
    return batches, tokenizers.target.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="data/multi30k")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="measured for each contender, about")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()  # for all three: it is a setting of the process
    batches, size = load_batches(arguments.root)
    lanes = []
    for build in (Manyheads, TorchTransformer, Marian):
        torch.manual_seed(1)
        lanes.append(Lane(build(size), arguments.precision))
    place, start = 0, time.perf_counter()
    while time.perf_counter() - start < arguments.seconds * len(lanes) or len(lanes[0].speeds) < 4:
        chosen = [batches[(place + offset) % len(batches)] for offset in range(TURN)]
        place += TURN
        for lane in lanes:
            lane.turn(chosen)
    rows = {}
    for lane in lanes:
        counted = lane.speeds[1:]  # the first turn warms up
        ratios = [speed / ours for speed, ours in zip(counted, lanes[0].speeds[1:], strict=True)]
        rows[lane.contender.name] = {
            "median": round(statistics.median(counted)),
            "min": round(min(counted)),
            "max": round(max(counted)),
            "to manyheads": round(statistics.median(ratios), 3),
        }
    if arguments.json:
        about = {"unit": "target tokens/s", "precision": arguments.precision, "threads": arguments.threads}
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        print(json.dumps({**about, "device": platform.machine(), "versions": versions, "rows": rows}))
        return
    print(f"non-pad target tokens/s, {arguments.precision}, {arguments.threads} threads, {len(counted)} turns each")
    for name, row in rows.items():
        span = f"[{row['min']:,} to {row['max']:,}]"
        print(f"{name:24} {row['median']:6,}  {span:20} {row['to manyheads']:.2f} of manyheads")


if __name__ == "__main__":
    main()
