"""Inspect a translator while it translates one sentence.

Shapes: S source length, T target length, both with their mark, V vocabulary, N words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.rescoring import review
from manyheads.errors import UsageError
from manyheads.inference.inspect_options import InspectOptions, check_length
from manyheads.inference.translation.assembly import pharaoh, with_end_mark, word_alignment
from manyheads.inference.translation.options import prefix_ids
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.common import (
    neighbours,
    predictions,
    text_of,
    tokens_of,
    without_each_word,
)
from manyheads.search.interface import Hypothesis, make_hypothesis, never_cancelled
from manyheads.search.options import Constraints, SearchOptions
from manyheads.tensors.capture import Reading, capture
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.views.beam_tree import BeamRecorder, BeamTree
from manyheads.views.codec import Array
from manyheads.views.documents import TranslationInspection
from manyheads.views.parts import Alignment, ModelFacts, Occluded, Occlusion, Output, Text

_DEFAULTS = InspectOptions()
_BATCH_TOKENS = 2_048  # source and target tokens a batch when words are left out


@dataclass(frozen=True)
class Outputs:
    """The outputs of a search, or a given output.

    Attributes:
        hypotheses: best first; a given output alone.
        tree: the search; None for a given output.
        num_forced: number of forced tokens of the output.
    """

    hypotheses: list[Hypothesis]
    tree: BeamTree | None
    num_forced: int


def inspect_translation(
    translator: Translator, text: str, options: InspectOptions = _DEFAULTS
) -> TranslationInspection:
    """Translate a sentence as `Translator.translate` does, and return the computation of the model.

    The line is taken as one sentence, without splitting, `search.copy_literals` and `search.lower_capitals`. Apart
    from that, the output is that of `translate` with the settings of the run, or the `target` of the options, or it
    begins with their `prefix`. An output of a model of several languages begins with the symbol of its language,
    which counts in its scores here.

    Raises:
        UsageError: the sentence, its target or the prefix is too long, empty, or impossible as an output; or the
            translator is not a single model in PyTorch, or has several directions (`Translator.to` chooses one).
    """
    engine = single_model(translator)
    translator = translator.to()
    source_side, target_side = translator.tokenizers.source, translator.tokenizers.target
    config, model = translator.config, engine.models[0]
    search = inspected_search(translator, options)
    with engine.evaluating():
        ids, outputs = outputs_of(translator, engine, text, search, options)
        best = outputs.hypotheses[0]
        output = with_end_mark(best)
        inputs = translator_inputs(engine, ids, output, options.padding)
        reading = capture(model, *inputs)
        occlusion = _leave_out_words(translator, engine, ids, output, search) if options.occlusion else None
    source = inputs[0][0].tolist()
    logits = reading.logits / options.temperature
    source_text = text_of(source_side, source, text, config.data.source)
    written = target_side.output_text(best.tokens, text)
    target_text = text_of(target_side, output, written, config.data.target, text)
    searched = [] if outputs.tree is None else outputs.hypotheses
    return TranslationInspection(
        run=options.run,
        model=ModelFacts.of(config),
        source=source_text,
        target=target_text,
        inputs=tokens_of(target_side, [BOS, *output[:-1]], text),
        attention=reading.attention,
        predictions=predictions(
            logits, output, target_side, alternatives=options.alternatives, num_forced=outputs.num_forced
        ),
        score=best.score,
        log_probability=best.log_probability,
        ended=best.ended,
        forced=outputs.tree is None,
        prefix=outputs.num_forced,
        hypotheses=tuple(_output_of(hypothesis, target_side, text) for hypothesis in searched),
        beam=outputs.tree,
        alignment=_align_words(reading, source_text, target_text),
        occlusion=occlusion,
        source_neighbours=neighbours(model.source_embedding.tokens, source, source_side, options.neighbours),
        target_neighbours=neighbours(model.target_embedding.tokens, output, target_side, options.neighbours),
    )


def outputs_of(
    translator: Translator, engine: TorchEngine, text: str, search: SearchOptions, options: InspectOptions
) -> tuple[list[int], Outputs]:
    """Return the ids of a sentence without marks, and its outputs.

    Raises:
        UsageError: see `inspect_translation`.
    """
    (ids,) = translator.tokenizers.source.encode([text])
    check_length(len(ids), "sentence", engine.longest)
    engine.check(search)
    outputs = _find_outputs(translator, engine, ids, search, options)
    check_length(len(outputs.hypotheses[0].tokens), "output", engine.longest, may_be_empty=True)
    return ids, outputs


def translator_inputs(
    engine: TorchEngine, ids: list[int], output: list[int], padding: int
) -> tuple[Tensor, Tensor]:
    """Return the inputs of the model: the source with its end mark and padding (1, S), and target_in (1, T)."""
    source = functional.pad(pad_rows([ids], PAD, last=EOS), (0, padding), value=PAD)
    target_in = pad_rows([output[:-1]], PAD, first=BOS)
    return source.to(engine.device), target_in.to(engine.device)


def single_model(translator: Translator) -> TorchEngine:
    """Return the engine of the translator if it is one model in PyTorch."""
    engine = translator.torch_engine
    if engine is None:
        raise UsageError('inspecting needs the model itself. Load it with engine = "auto".')
    if len(engine.models) > 1:
        raise UsageError("inspecting looks into one model, and this is an ensemble. Load one run.")
    return engine


def inspected_search(translator: Translator, options: InspectOptions) -> SearchOptions:
    """Return the search options of the run, with all hypotheses of the beam as outputs."""
    beam_size = options.beam_size or translator.config.search.beam_size
    return SearchOptions(beam_size=beam_size, n_best=beam_size).complete(vars(translator.config.search))


def _find_outputs(
    translator: Translator, engine: TorchEngine, ids: list[int], search: SearchOptions, options: InspectOptions
) -> Outputs:
    tokenizer = translator.tokenizers.target
    prefix, ends = prefix_ids(options.prefix, tokenizer)
    language = translator.prefix
    prefix = prefix if prefix[: len(language)] == language else (*language, *prefix)
    check_length(len(prefix), "prefix", engine.longest, may_be_empty=True)
    if options.target is None and not ends:
        return _recorded_search(engine, ids, search, tokenizer, tuple(prefix))
    forced = list(prefix)
    if options.target is not None:
        (forced,) = tokenizer.encode([options.target])
        forced = [*language, *forced]
        check_length(len(forced), "target", engine.longest, may_be_empty=True)
    with torch.inference_mode():
        scores = _token_log_probs(engine, [ids], [*forced, EOS])[0].tolist()
    output = make_hypothesis([*forced, EOS], scores, ended=True, length_penalty=search.length_penalty)
    return Outputs([output], None, len(forced) + 1)


def _recorded_search(
    engine: TorchEngine, ids: list[int], search: SearchOptions, tokenizer: Tokenizer, prefix: tuple[int, ...]
) -> Outputs:
    recorder = BeamRecorder(
        beam_size=search.beam_size,
        length_penalty=search.length_penalty,
        eos=EOS,
        piece=lambda token: tokenizer.pieces([token])[0],
    )
    with torch.inference_mode():
        hypotheses = engine.search_batch([ids], search, [Constraints(prefix)], never_cancelled, recorder)
        (reviewed,) = review(engine.models, [ids], hypotheses, search)
    best = reviewed[0]
    return Outputs(reviewed, recorder.tree(with_end_mark(best)), len(prefix))


def _token_log_probs(engine: TorchEngine, rows: Sequence[Sequence[int]], output: Sequence[int]) -> Tensor:
    """Return the log-probability of each token of an output (T) for each of N sources, in float64: (N, T)."""
    model, device = engine.models[0], engine.device
    target_in = pad_rows([output[:-1]], PAD, first=BOS).to(device)
    tokens = torch.tensor(output, device=device)[None, :, None]
    size = max(1, _BATCH_TOKENS // (max(map(len, rows)) + 1 + len(output)))
    chunks = []
    for first in range(0, len(rows), size):
        source = pad_rows(rows[first : first + size], PAD, last=EOS).to(device)
        logits = model(source, target_in.expand(len(source), -1))
        log_probs = functional.log_softmax(logits.double(), -1)
        chunks.append(log_probs.gather(2, tokens.expand(len(source), -1, -1))[..., 0].cpu())
    return torch.cat(chunks)


@torch.inference_mode()
def _leave_out_words(
    translator: Translator, engine: TorchEngine, ids: list[int], output: list[int], search: SearchOptions
) -> Occlusion:
    """Leave out each source word: score the output and translate greedily without the word."""
    target = translator.tokenizers.target
    words, rows = without_each_word(translator.tokenizers.source, ids)
    log_probs = _token_log_probs(engine, [ids, *rows], output)
    drops = log_probs[:1] - log_probs[1:]  # (N, T)
    greedy = replace(search, beam_size=1, n_best=1)
    left, prefix = [row for row in rows if row], Constraints(translator.prefix)
    translations = iter(engine.search(left, greedy, [prefix] * len(left) if translator.prefix else ()))
    return Occlusion(
        tuple(target.pieces(output)),
        tuple(
            Occluded(
                word,
                float(drop.sum()),
                tuple(drop.tolist()),
                target.decode(next(translations)[0].tokens) if row else "",
            )
            for word, row, drop in zip(words, rows, drops, strict=True)
        ),
    )


def _align_words(reading: Reading, source: Text, target: Text) -> Alignment | None:
    """Align words by the mean of the heads of the last decoder layer; None if a side has no words."""
    source_words = [token.word for token in source.tokens if token.word is not None]
    target_words = [token.word for token in target.tokens if token.word is not None]
    if not source.words or not target.words:
        return None
    attention = reading.attention[2]
    cross = attention.of(-1, None)[: len(target_words), : len(source_words)]
    links = word_alignment(cross.tolist(), source_words, target_words)
    weights = _word_weights(cross, source_words, target_words)
    return Alignment(len(attention.weights) - 1, pharaoh(links), tuple(links), weights)


def _word_weights(cross: Array, source_words: list[int], target_words: list[int]) -> Array:
    """Return the attention between words, the mean over the tokens of a target word: (T, S) -> words."""
    sums = np.zeros((max(target_words) + 1, max(source_words) + 1), np.float32)
    np.add.at(sums, (np.array(target_words)[:, None], np.array(source_words)[None]), cross)
    tokens = np.maximum(np.bincount(target_words), 1).astype(np.float32)
    mean: Array = sums / tokens[:, None]
    return mean


def _output_of(hypothesis: Hypothesis, tokenizer: Tokenizer, source: str) -> Output:
    ids = tuple(with_end_mark(hypothesis))
    return Output(
        text=tokenizer.output_text(hypothesis.tokens, source),
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        ids=ids,
        pieces=tuple(tokenizer.pieces(ids)),
        token_scores=hypothesis.token_scores,
        ended=hypothesis.ended,
    )
