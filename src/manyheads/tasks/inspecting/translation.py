"""Looks into a translator while it translates one sentence.

Shapes: S source length, T target length, both with their mark, V vocabulary, N words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manyheads.data.batch import pad_rows
from manyheads.decoding.engine import Job, TorchEngine
from manyheads.decoding.rescoring import review
from manyheads.errors import UsageError
from manyheads.inspection.beam_tree import BeamRecorder, BeamTree
from manyheads.inspection.capture import Reading, watch_pair
from manyheads.inspection.codec import Array
from manyheads.inspection.documents import TranslationInspection
from manyheads.inspection.parts import Alignment, Occluded, Occlusion, Output, Text
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.tasks.alignment import pharaoh, word_alignment
from manyheads.tasks.inspecting.common import facts, neighbours, predictions, text_of, tokens_of
from manyheads.tasks.inspecting.options import InspectOptions, check_length, prefix_ids
from manyheads.tasks.options import PerLine, TranslateOptions, search_options
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer

__all__ = ["inspect_translation"]

DEFAULTS = InspectOptions()
TOGETHER = 2_048  # source and target tokens read together when words are left out


def inspect_translation(
    translator: Translator, text: str, options: InspectOptions = DEFAULTS
) -> TranslationInspection:
    """Translate a sentence as `Translator.translate` does, and tell all that happened inside.

    The line is taken as one sentence, whatever `split` would make of it. The output is that of `translate` with the
    settings of the run; or the `target` of the options; or goes on from their `prefix`.

    Raises:
        UsageError: the sentence, its target or the prefix is too long, empty, or cannot come out; or the translator
            has no single model of ours to look into.
    """
    engine = engine_of(translator)
    (ids,) = translator.tokenizers.source.encode([text])
    check_length(len(ids), "sentence", engine.longest)
    search = asked(translator, options)
    engine.check(replace(search, prefixes=()))
    with engine.evaluating():
        found, tree, given = outputs(translator, engine, ids, search, options)
        best = found[0]
        check_some(len(best.tokens), "output", engine.longest)
        output = [*best.tokens, *[EOS][: best.ended]]
        source = functional.pad(pad_rows([ids], PAD, last=EOS), (0, options.padding), value=PAD)
        target_in = pad_rows([output[:-1]], PAD, first=BOS)
        reading = watch_pair(engine.models[0], source.to(engine.device), target_in.to(engine.device))
        occlusion = occluded(translator, engine, ids, output, search) if options.occlusion else None
    return document(
        translator, text, [*source[0].tolist()], output, reading, found, tree, given, occlusion, options
    )


def engine_of(translator: Translator) -> TorchEngine:
    """The engine of the translator, if it is one model in PyTorch."""
    engine = translator.engine
    if not isinstance(engine, TorchEngine):
        raise UsageError('inspecting needs the model itself. Load it with engine = "torch".')
    if len(engine.models) > 1:
        raise UsageError("inspecting looks into one model, and this is an ensemble. Load one run.")
    return engine


def asked(translator: Translator, options: InspectOptions) -> SearchOptions:
    """The settings of the search, with all that the beam can find as candidates."""
    tokenizer = translator.tokenizers.target
    prefix, _ = prefix_ids(options.prefix, tokenizer)
    nothing = PerLine((), (), ())
    found = search_options(translator.config.search, TranslateOptions(), options.beam_size, 1, nothing)
    return replace(found, n_best=found.beam_size, prefixes=(prefix,) if prefix else ())


def outputs(
    translator: Translator, engine: TorchEngine, ids: list[int], search: SearchOptions, options: InspectOptions
) -> tuple[list[Hypothesis], BeamTree | None, int]:
    """The outputs, best first, the search, and how many tokens of the output were given."""
    tokenizer = translator.tokenizers.target
    prefix, ends = prefix_ids(options.prefix, tokenizer)
    check_some(len(prefix), "prefix", engine.longest)
    if options.target is None and not ends:
        found, tree = searched(engine, ids, search, tokenizer)
        return found, tree, len(prefix)
    forced = tokenizer.encode([options.target])[0] if options.target is not None else list(prefix)
    if options.target is not None:
        check_length(max(1, len(forced)), "target", engine.longest)
    given = scored(engine, ids, forced, search.length_penalty)
    return [given], None, len(forced) + 1


def check_some(tokens: int, what: str, most: int) -> None:
    """A prefix or an output may be empty, but must not be too long."""
    if tokens:
        check_length(tokens, what, most)


def searched(
    engine: TorchEngine, ids: list[int], search: SearchOptions, tokenizer: Tokenizer
) -> tuple[list[Hypothesis], BeamTree]:
    """Search as the engine does, watched."""
    recorder = BeamRecorder(
        beam_size=search.beam_size,
        n_best=search.n_best,
        length_penalty=search.length_penalty,
        eos=EOS,
        piece=lambda token: tokenizer.pieces([token])[0],
    )
    with torch.inference_mode():
        found = engine.searched(Job([ids], search, observer=recorder))
        (reviewed,) = review(engine.models, engine.combine, [ids], found, search)
    best = reviewed[0]
    return reviewed, recorder.tree([*best.tokens, *[EOS][: best.ended]])


@torch.inference_mode()
def scored(engine: TorchEngine, ids: list[int], forced: list[int], length_penalty: float) -> Hypothesis:
    """A given output as if it had been found."""
    scores = tuple(token_log_probs(engine, [ids], [*forced, EOS])[0].tolist())
    total = sum(scores)
    return Hypothesis(tuple(forced), total, total / len(scores) ** length_penalty, scores, ended=True)


def token_log_probs(engine: TorchEngine, rows: Sequence[Sequence[int]], output: Sequence[int]) -> Tensor:
    """The log-probability of each token of an output (T) after each of N sources, in float64: (N, T)."""
    model, device = engine.models[0], engine.device
    target_in = pad_rows([output[:-1]], PAD, first=BOS).to(device)
    wanted = torch.tensor(output, device=device)[None, :, None]
    size = max(1, TOGETHER // (max(map(len, rows)) + 1 + len(output)))
    found = []
    for first in range(0, len(rows), size):
        source = pad_rows(rows[first : first + size], PAD, last=EOS).to(device)
        logits = model(source, target_in.expand(len(source), -1))
        log_probs = functional.log_softmax(logits.double(), -1)
        found.append(log_probs.gather(2, wanted.expand(len(source), -1, -1))[..., 0].cpu())
    return torch.cat(found)


@torch.inference_mode()
def occluded(
    translator: Translator, engine: TorchEngine, ids: list[int], output: list[int], search: SearchOptions
) -> Occlusion:
    """Leave out each word of the source: how likely the output is then, and what is translated greedily."""
    source, target = translator.tokenizers.source, translator.tokenizers.target
    words = [token.word for token in tokens_of(source, ids)]
    numbers = sorted({word for word in words if word is not None})
    rows = [[token for token, word in zip(ids, words, strict=True) if word != number] for number in numbers]
    log_probs = token_log_probs(engine, [ids, *rows], output)
    drops = log_probs[:1] - log_probs[1:]  # (N, T)
    plain = replace(search, beam_size=1, n_best=1, prefixes=())
    places = [place for place, row in enumerate(rows) if row]
    outputs = dict(zip(places, engine.search([rows[place] for place in places], plain), strict=True))
    return Occlusion(
        tuple(target.pieces(output)),
        tuple(
            Occluded(
                number,
                float(drops[place].sum()),
                tuple(drops[place].tolist()),
                target.decode(outputs[place][0].tokens) if place in outputs else "",
            )
            for place, number in enumerate(numbers)
        ),
    )


def aligned(reading: Reading, source: Text, target: Text, layer: int) -> Alignment | None:
    """Words linked by the mean of the heads of a decoder layer; None where a side has no words."""
    of_source = [token.word for token in source.tokens if token.word is not None]
    of_target = [token.word for token in target.tokens if token.word is not None]
    if not of_source or not of_target:
        return None
    cross = reading.attention[2].of(layer, None)[: len(of_target), : len(of_source)]
    links = word_alignment(cross.tolist(), of_source, of_target)
    return Alignment(
        layer=layer % len(reading.attention[2].weights),
        pharaoh=pharaoh(links),
        links=tuple(links),
        weights=merged(cross, of_source, of_target),
    )


def merged(cross: Array, source_words: list[int], target_words: list[int]) -> Array:
    """How much the words of the target looked at those of the source, the mean over a word's tokens: -> words."""
    found = np.zeros((max(target_words) + 1, max(source_words) + 1), np.float32)
    np.add.at(found, (np.array(target_words)[:, None], np.array(source_words)[None]), cross)
    tokens = np.maximum(np.bincount(target_words), 1).astype(np.float32)
    mean: Array = found / tokens[:, None]
    return mean


def document(
    translator: Translator,
    text: str,
    source_ids: list[int],
    output: list[int],
    reading: Reading,
    found: list[Hypothesis],
    tree: BeamTree | None,
    given: int,
    occlusion: Occlusion | None,
    options: InspectOptions,
) -> TranslationInspection:
    """All of it as one object."""
    config, pair, best = translator.config, translator.tokenizers, found[0]
    model = engine_of(translator).models[0]
    source = text_of(pair.source, source_ids, text, config.data.source)
    target = text_of(pair.target, output, pair.target.decode(best.tokens), config.data.target)
    return TranslationInspection(
        run=options.run,
        model=facts(config),
        source=source,
        target=target,
        inputs=tokens_of(pair.target, [BOS, *output[:-1]]),
        attention=reading.attention,
        predictions=predictions(reading.logits, output, pair.target, rivals=options.rivals, given=given),
        score=best.score,
        log_probability=best.log_probability,
        ended=best.ended,
        forced=tree is None,
        prefix=given,
        hypotheses=() if tree is None else tuple(candidate(one, pair.target) for one in found),
        beam=tree,
        alignment=aligned(reading, source, target, config.search.attention_layer),
        occlusion=occlusion,
        source_neighbours=neighbours(model.source_embedding.tokens, source_ids, pair.source, options.neighbours),
        target_neighbours=neighbours(model.target_embedding.tokens, output, pair.target, options.neighbours),
    )


def candidate(found: Hypothesis, tokenizer: Tokenizer) -> Output:
    """An output of the search as a person reads it."""
    ids = (*found.tokens, *(EOS,)[: found.ended])
    return Output(
        text=tokenizer.decode(found.tokens),
        score=found.score,
        log_probability=found.log_probability,
        ids=ids,
        pieces=tuple(tokenizer.pieces(ids)),
        token_scores=found.token_scores,
        ended=found.ended,
    )
