"""What the doctor finds: false alarms on sound models, and every planted defect, one at a time and in pairs.

    python -m benchmarks.doctor [--pairs] [--json]

Run it from the root of the repository: the models are those of tests/doctor. All random weights, seeded.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations, islice

import torch
from tests.doctor import peers
from tests.doctor.planted import BOS, EOS, PAD, TorchTransformer
from tests.doctor.whole import Project

from benchmarks import machine
from manyheads.config.schema import ModelConfig
from manyheads.doctor import Report, examine
from manyheads.doctor.catalogue import CATALOGUE
from manyheads.doctor.museum import exhibits
from manyheads.model.encoder_decoder import EncoderDecoder

MARKS = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS}


def ours(norm: str, positions: str) -> EncoderDecoder:
    shape = {"d_model": 16, "num_heads": 2, "d_ff": 29, "num_encoder_layers": 1, "num_decoder_layers": 1}
    return EncoderDecoder(ModelConfig(**shape, norm=norm, positions=positions), 23, 23, pad=PAD)


def sound_models() -> Iterator[tuple[str, Callable[[], Report]]]:
    for name in peers.NAMES:
        yield f"transformers {name}", lambda name=name: examine(peers.make(name))
    for first in (False, True):
        for bias in (True, False):
            told = f"nn.Transformer, {'pre' if first else 'post'}-norm{'' if bias else ', no bias'}"
            yield (
                told,
                lambda first=first, bias=bias: examine(TorchTransformer(norm_first=first, bias=bias), **MARKS),
            )
    for norm in ("pre", "post"):
        for positions in ("sinusoidal", "learned", "rotary"):
            told = f"manyheads, {norm}-norm, {positions}"
            yield told, lambda norm=norm, positions=positions: examine(ours(norm, positions), **MARKS)


def alarms(most: int | None, seeds: int) -> Iterator[dict[str, object]]:
    for name, look in islice(sound_models(), most):
        found: set[str] = set()
        checks = 0
        for seed in range(seeds):
            torch.manual_seed(seed)
            report = look()
            found |= set(report.names)
            checks = len(report.asked)
        yield {"model": name, "seeds": seeds, "checks": checks, "alarms": sorted(found)}


def plants(most: int | None, *, pairs: bool) -> Iterator[dict[str, object]]:
    sets = [*combinations(range(1, 19), 1), *(combinations(range(1, 19), 2) if pairs else ())]
    for defects in sets[:most]:
        torch.manual_seed(5)
        report = Project(*defects).examined()
        numbers = {name: CATALOGUE["model"][name].exhibit for name in report.names}
        yield {
            "planted": list(defects),
            "named": report.names,
            "missed": sorted(set(defects) - set(numbers.values())),
            "wrong": sorted(name for name, number in numbers.items() if number not in defects),
        }


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument(
        "--pairs", action="store_true", help="also plant all 153 pairs of defects, about two minutes"
    )
    parser.add_argument(
        "--most", type=int, help="largest number of sound models and of planted defects (default: all)"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each sound model (default 5)")
    options = machine.parse(parser, tiny={"most": 2, "seeds": 1})
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    sound, planted = list(alarms(options.most, options.seeds)), list(plants(options.most, pairs=options.pairs))
    seconds = time.perf_counter() - start
    about = machine.about("transformers")
    if options.json:
        print(json.dumps({"unit": "s", **about, "sound": sound, "planted": planted, "seconds": seconds}))
        return
    print(f"| sound model, {options.seeds} seeds | checks | alarms |\n| --- | --- | --- |")
    for row in sound:
        print(f"| {row['model']} | {row['checks']} | {', '.join(row['alarms']) or 'none'} |")
    titles = {one.number: one.text("en").title for one in exhibits()}
    print("\n| planted alone | named |\n| --- | --- |")
    for row in planted[:18]:
        number = row["planted"][0]
        print(f"| {number}. {titles[number]} | {', '.join(row['named'])} |")
    both = planted[18:]
    right = sum(not row["missed"] and not row["wrong"] for row in both)
    if both:
        print(f"\n{right} of {len(both)} pairs: both named, and nothing else")
    for row in planted:
        if row["missed"] or row["wrong"]:
            print(f"{row['planted']}: missed {row['missed']}, named without cause {row['wrong']}")
    print(f"\n{seconds:.0f} s, {machine.describe(about)}")


if __name__ == "__main__":
    main()
