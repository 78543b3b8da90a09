"""Check manyheads on a GPU against the CPU, and measure its speed and memory: one Markdown table for an issue.

    python benchmarks/gpu_check.py [--device cuda] [--tiny] [--json]

Trains the recipe `demo-de-en` on the device, on text that comes with the package, and reports

- losses of the first updates without dropout on the device, compared with float32 on the CPU: the largest relative
  difference, at most 0.1 % in float32 and 3 % in bfloat16;
- greedy and beam translations of test sentences by the same weights on the device and on the CPU: the share that is
  equal token by token, at least 98 % in float32 and 80 % in bfloat16;
- speed of training in target tokens/s, of a model of width 512 with 6 + 6 layers, and of decoding in sentences/s,
  all sentences in one call: median and range of the rounds;
- peak memory of each: on a GPU the memory that torch allocated, on a CPU the resident size of the process.

bfloat16 is left out on a GPU that computes it by emulation. Exit status: 0 if all comparisons hold, 1 if one does
not, 2 without a GPU; `--device cpu` runs the same on the CPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch

from decoding_speed import measure_decoding
from harness import Document, main, option, settings
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.errors import ConfigError
from manyheads.inference.translation.translator import Translator
from manyheads.tensors.devices import Precision, pick_device
from manyheads.training.scored_text import ScoredText
from material import SMALLEST, train_recipe
from training_speed import measure_training, peak_memory_mib, prepared_updates

LOSS_TOLERANCE = {"fp32": 1e-3, "bf16": 3e-2}  # relative difference
EQUAL_TRANSLATIONS = {"fp32": 0.98, "bf16": 0.80}  # share of sentences
LARGE = ("model.d_model=512", "model.d_ff=2048", "model.num_heads=8", "model.num_encoder_layers=6",
         "model.num_decoder_layers=6", "training.batch_tokens=8192")  # fmt: skip
RATE = 1e-3  # learning rate of the compared updates


def row(check: str, result: str, expected: str = "", passed: bool | None = None) -> Document:
    """Return a row of the table: a quantity, its value with the unit, and the bound that it is compared with."""
    return {"check": check, "result": result, "expected": expected, "passed": passed}


def recipe_config(*overrides: str) -> Config:
    return load_config(resolve_recipe("demo-de-en"), overrides)


def first_losses(config: Config, device: torch.device, precision: Precision, updates: int) -> list[float]:
    """Train from the same random weights without dropout; return the loss of each update, nats a token."""
    losses = []
    with prepared_updates(config, device, precision) as (_, updater, batches):
        for parts in islice(batches, updates):
            tokens = sum(part.target_tokens for part in parts)
            losses.append(sum(float(result.nll) for result in updater.gradients(parts, tokens)) / tokens)
            updater.apply(RATE)
    return losses


def loss_rows(
    device: torch.device, precisions: Sequence[Precision], updates: int, overrides: Sequence[str]
) -> Iterator[Document]:
    """Yield the comparison of the first losses with those of float32 on the CPU."""
    config = recipe_config("model.dropout=0", *overrides)
    reference = first_losses(config, torch.device("cpu"), "fp32", updates)
    for precision in precisions:
        losses = first_losses(config, device, precision, updates)
        largest = max(abs(loss - expected) / expected for loss, expected in zip(losses, reference, strict=True))
        bound = LOSS_TOLERANCE[precision]
        yield row(
            f"loss of {len(reference)} updates, {precision}",
            f"{reference[0]:.4f} to {reference[-1]:.4f} nats/token, differs by {largest:.2%}",
            f"at most {bound:.1%}",
            largest <= bound,
        )


def translation_rows(
    run: Path, device: torch.device, precisions: Sequence[Precision], sentences: int
) -> Iterator[Document]:
    """Yield the comparison of translations on the device with those of float32 on the CPU."""
    on_cpu = Translator.load(run, device="cpu")
    sources = ScoredText().pairs(on_cpu.config)[0][:sentences]
    for beam_size in (1, 5):
        reference = best_tokens(on_cpu, sources, beam_size)
        for precision in precisions:
            translator = Translator.load(run, device=str(device), precision=precision)
            outputs = best_tokens(translator, sources, beam_size)
            equal = sum(map(list.__eq__, outputs, reference)) / len(reference)
            bound = EQUAL_TRANSLATIONS[precision]
            search = "greedy" if beam_size == 1 else f"beam {beam_size}"
            yield row(
                f"{search} translations of {len(reference)} sentences, {precision}",
                f"{equal:.1%} equal token by token",
                f"at least {bound:.0%}",
                equal >= bound,
            )


def best_tokens(translator: Translator, sources: Sequence[str], beam_size: int) -> list[Sequence[int]]:
    return [result.hypotheses[0].tokens for result in translator.translate(sources, beam_size=beam_size)]


def speed_rows(
    run: Path,
    device: torch.device,
    precisions: Sequence[Precision],
    arguments: argparse.Namespace,
    large: Sequence[str],
) -> Iterator[Document]:
    """Yield speed and peak memory of training and decoding."""
    for precision in precisions:
        reset_peak_memory(device)
        config = recipe_config(f"training.device={device}", f"training.precision={precision}", *large)
        speed = measure_training(config, rounds=arguments.rounds, updates=arguments.updates)
        yield row(
            f"training, {speed.parameters / 1e6:.1f} million parameters, {precision}",
            f"{speed.median:,.0f} target tokens/s ({speed.min:,.0f} to {speed.max:,.0f}), "
            f"peak {speed.peak_memory_mib:,.0f} MiB",
        )
    for precision in precisions:
        reset_peak_memory(device)
        translator = Translator.load(run, device=str(device), precision=precision)
        parameters = sum(parameter.numel() for parameter in translator.model.parameters())
        modes = measure_decoding(
            translator, beams=(1, 5), batches=(0,), sentences=arguments.sentences, rounds=arguments.rounds
        )
        for mode in modes:
            yield row(
                f"decoding, {parameters / 1e6:.1f} million parameters, beam {mode.beam_size}, {precision}",
                f"{mode.median:,.1f} sentences/s ({mode.min:,.1f} to {mode.max:,.1f}), "
                f"peak {peak_memory_mib(device):,.0f} MiB",
            )


def reset_peak_memory(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def native_precisions(device: torch.device) -> list[Precision]:
    """Return the precisions that the device computes without emulation."""
    emulated = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    return ["fp32"] if emulated else ["fp32", "bf16"]


def measure(arguments: argparse.Namespace) -> Document:
    try:
        device = pick_device(arguments.device)
    except ConfigError:
        message = f"error: torch finds no device {arguments.device} here; --device cpu checks the CPU."
        print(message, file=sys.stderr)
        raise SystemExit(2) from None
    precisions, small, run = native_precisions(device), arguments.overrides, arguments.folder / "run"
    rows = list(loss_rows(device, precisions, arguments.updates, small))
    print(f"training on {device}")
    train_recipe("demo-de-en", [f"training.device={device}", *small], run)
    rows += translation_rows(run, device, precisions, arguments.sentences)
    rows += speed_rows(run, device, precisions, arguments, LARGE if not arguments.tiny else small)
    versions = {}
    if device.type == "cuda":
        versions = {"GPU": torch.cuda.get_device_name(device), "CUDA": torch.version.cuda}
    return {"rows": rows, "versions": versions}


OPTIONS = {
    "--device": option("cuda", "device to check: cuda, cuda:1, cpu"),
    "--updates": option(20, "updates to compare, and to time in a round", tiny=2),
    "--sentences": option(500, "sentences to translate", tiny=5),
    "--rounds": option(5, "measurements of each speed", tiny=1),
    "--set": settings([*SMALLEST, "tokenizer.vocab_size=340", "training.valid_sentences=5"]),
}

if __name__ == "__main__":
    document = main(measure, __doc__, OPTIONS, unit="see each row")
    failed = any(entry["passed"] is False for entry in document["rows"])
    sys.exit(failed and not document.get("tiny"))
