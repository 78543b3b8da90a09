"""Inspect a language model while it reads and continues a text.

Shapes: T tokens of the text, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.inference.generator import GenerateOptions, Generator, first_token
from manyheads.inference.inspect_options import InspectOptions, check_length
from manyheads.inference.loading import evaluating
from manyheads.inference.translation.assembly import with_end_mark
from manyheads.inference.translation.options import prefix_ids
from manyheads.inspection.common import alternatives_of, neighbours, predictions, text_of, tokens_of
from manyheads.search.arrays import run_steps
from manyheads.tensors.capture import capture
from manyheads.text.tokenizer import EOS
from manyheads.views.documents import LanguageModelInspection
from manyheads.views.parts import ModelFacts

_DEFAULTS = InspectOptions()


def inspect_language_model(
    generator: Generator, text: str, options: InspectOptions = _DEFAULTS
) -> LanguageModelInspection:
    """Read a text, generate `max_tokens` more greedily, and return the prediction of each token.

    Args:
        generator: the model.
        text: beginning of the text; it may be "" with a `prefix` of token ids, or with `max_tokens`.
        options: `prefix` follows `text`.
    """
    options.refuse("language-modeling", "target", "beam_size", "padding")
    tokenizer = generator.tokenizer
    inputs, num_forced = generator_inputs(generator, text, options)
    first, *ids = inputs[0].tolist()
    with evaluating(generator.model):
        reading = capture(generator.model, inputs)
    logits = reading.logits / options.temperature
    tokens = predictions(logits[:-1], ids, tokenizer, alternatives=options.alternatives, num_forced=num_forced)
    after = functional.log_softmax(logits[-1].double(), -1)
    return LanguageModelInspection(
        run=options.run,
        model=ModelFacts.of(generator.config),
        text=text_of(tokenizer, ids, tokenizer.decode(ids), generator.config.data.language),
        inputs=tokens_of(tokenizer, [first, *ids[:-1]]),
        attention=reading.attention,
        predictions=tokens,
        next=alternatives_of(after, tokenizer, options.alternatives),
        log_probability=sum(token.log_probability for token in tokens),
        prefix=num_forced,
        neighbours=neighbours(generator.model.embedding.tokens, ids, tokenizer, options.neighbours),
    )


def generator_inputs(generator: Generator, text: str, options: InspectOptions) -> tuple[Tensor, int]:
    """Return the input of the model, its first token and the text (1, 1 + T), and the number of forced tokens."""
    tokenizer = generator.tokenizer
    more, ends = prefix_ids(options.prefix, tokenizer)
    prompt = [*tokenizer.encode([text])[0], *more, *([EOS] if ends else [])]
    first = first_token(generator.config, tokenizer)
    ids = [*prompt, *_continuation(generator, text, more, options.max_tokens)] if not ends else prompt
    check_length(len(ids), "text", generator.window - 1)
    return torch.tensor([[first, *ids]], device=generator.model.output.weight.device), len(prompt)


def _continuation(generator: Generator, text: str, more: tuple[int, ...], count: int) -> list[int]:
    """Return the tokens generated greedily after a text and further ids, with the end mark if any."""
    if not count:
        return []
    (context,) = generator.contexts([text])
    options = GenerateOptions(sampling=None, max_tokens=count)
    with evaluating(generator.model):
        (hypothesis,) = run_steps(generator.write([(0, [*context, *more])], options))
    return with_end_mark(hypothesis)
