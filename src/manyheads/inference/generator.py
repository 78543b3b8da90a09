"""A trained language model: a prompt in, generated text out (Radford et al. 2019)."""

from __future__ import annotations

import ctypes
from collections.abc import Generator as GeneratorType
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.batches import fixed_batches
from manyheads.inference.generation import (
    Continuation,
    Ended,
    GenerateOptions,
    Generation,
    end_after_stop,
    end_cancelled,
    stream_before_stop,
    text_before_stop,
)
from manyheads.inference.loading import LoadableModel, evaluating, open_model
from manyheads.inference.native.language_model import NativeLanguageModel, NativeTextStepper, with_fixed_bias
from manyheads.inference.native.model import FloatArray
from manyheads.inference.torch_parts import torch_module
from manyheads.inference.translation.assembly import with_end_mark
from manyheads.search.arrays import DecodingSteps, decode_steps, likeliest, run_steps, sampler
from manyheads.search.interface import Cancelled, Hypothesis, SpecialIds, never_cancelled
from manyheads.text.interface import growing_text
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

__all__ = ["Continuation", "GenerateOptions", "Generation", "Generator", "first_token"]

SUPPRESSED_IDS = (UNK, PAD, BOS)  # ids that are never generated
_SPECIAL_IDS = SpecialIds(bos=EOS, eos=EOS, suppressed=SUPPRESSED_IDS)

_DEFAULTS = GenerateOptions()


class TextStepper(Protocol):
    """A language model while it writes; see `search.interface.Stepper`, with NumPy arrays."""

    def step(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Append one token to each row: (R,) -> log-probabilities of the next token (R, V)."""
        ...

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep some of the R rows, in the given order: (R',) row indices, repeats allowed."""
        ...


class Generator(LoadableModel):
    """A language model and its tokenizer.

    A generated text depends on its prompt, the options and the index of the sample alone: not on the other prompts
    of a call, their number or their order.

    The settings `data.max_length`, `data.documents` and `search.batch_tokens` are used.
    """

    task = "language-modeling"

    @classmethod
    def of_run(cls, run: RunDirectory, config: Config, device: str) -> Self:
        """Open a language model of a run; `config` is its configuration, `device` as in `load`."""
        tokenizer = run.tokenizers(config).source

        def pack(tensors: Mapping[str, FloatArray], code: ctypes.CDLL) -> NativeLanguageModel:
            tensors = with_fixed_bias(tensors, tokenizer.size, tokenizer.absent)
            return NativeLanguageModel(tensors, config.model, tokenizer.size, "fp32", code)

        return cls(config, tokenizer, open_model(run, config, tokenizer, 0, device, pack))

    @property
    def window(self) -> int:
        """Maximum number of tokens that the model sees: the block length of its training."""
        return self.config.data.max_length

    def generate(
        self,
        prompts: Sequence[str] = ("",),
        options: GenerateOptions = _DEFAULTS,
        cancelled: Cancelled = never_cancelled,
    ) -> list[Continuation]:
        """Generate texts after each prompt; an empty prompt starts a new text.

        Args:
            prompts: beginnings of texts.
            options: options of generation.
            cancelled: returns the indices of prompts to stop early; the texts of these prompts are meaningless.

        Raises:
            UsageError: `prompts` is a string.
        """
        contexts = self.contexts(prompts)
        outputs: list[list[Hypothesis]] = [[] for _ in prompts]
        with self.evaluating():
            for indices in self.batches(contexts, options.samples):
                rows = [(sample, contexts[index]) for index in indices for sample in range(options.samples)]
                hypotheses = run_steps(
                    self.write(rows, options, _cancelled_rows(cancelled, indices, options.samples))
                )
                for number, index in enumerate(indices):
                    first = number * options.samples
                    outputs[index] = hypotheses[first : first + options.samples]
        return [
            Continuation(
                prompt,
                [self.generation(output, options.stop) for output in prompt_outputs],
                truncated=len(context) > self.window,
                unknown=context.count(UNK),
            )
            for prompt, context, prompt_outputs in zip(prompts, contexts, outputs, strict=True)
        ]

    def stream(
        self, prompt: str = "", options: GenerateOptions = _DEFAULTS, *, sample: int = 0
    ) -> GeneratorType[str, None, Ended]:
        """Yield one sample of `generate` in pieces, as they are generated; `sample` is the index of the sample.

        Returns:
            How the text ended (`Generation.ended`), after the last piece.
        """
        (context,) = self.contexts([prompt])
        finished: list[Hypothesis] = []

        def tokens() -> Iterator[int]:
            steps = self.write([(sample, context)], options)
            while True:
                try:
                    _, latest = next(steps)
                except StopIteration as end:
                    finished.extend(end.value)
                    return
                yield from latest

        with self.evaluating():
            yield from stream_before_stop(growing_text(self.tokenizer, tokens()), options.stop)
        return self.generation(finished[0], options.stop).ended if finished else "stop"

    def unseen(self, prompts: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the numbers, from 1, of prompts longer than the window, and of prompts with unknown tokens."""
        contexts = list(enumerate(self.contexts(prompts), start=1))
        cut = [number for number, context in contexts if len(context) > self.window]
        return cut, [number for number, context in contexts if UNK in context]

    def contexts(self, prompts: Sequence[str]) -> list[list[int]]:
        """Encode prompts to contexts of at least one token."""
        first = first_token(self.config, self.tokenizer)
        if self.config.data.documents == "line":
            return [[first, *ids] for ids in self.tokenizer.encode(prompts)]
        return [ids or [first] for ids in self.tokenizer.encode(prompts)]

    def batches(self, contexts: Sequence[Sequence[int]], samples: int) -> Iterator[list[int]]:
        """Yield the indices of each batch of contexts; a batch holds contexts of similar length."""
        lengths = np.array([min(len(context), self.window) for context in contexts], dtype=np.int64)
        rows = max(1, self.config.search.batch_tokens // (self.window * samples))
        for batch in fixed_batches(lengths, self.config.search.batch_tokens):
            for first in range(0, len(batch), rows):
                yield batch[first : first + rows].tolist()

    def evaluating(self) -> AbstractContextManager[None]:
        """Put a model in torch in evaluation mode; restore its mode at the end."""
        return nullcontext() if self.native is not None else evaluating(self.model)

    def write(
        self,
        rows: Sequence[tuple[int, list[int]]],
        options: GenerateOptions,
        cancelled: Cancelled = never_cancelled,
    ) -> DecodingSteps:
        """Generate after each context, one step at a time; rows: pairs (index of the sample, context)."""
        contexts = [tuple(context) for _, context in rows]
        unique = list(dict.fromkeys(contexts))  # each is computed once
        stepper = self.stepper(unique, options.max_tokens)
        if len(unique) < len(contexts):
            stepper.select(np.array([unique.index(context) for context in contexts]))
        sampling = options.sampling
        choose = sampler(sampling, rows, SUPPRESSED_IDS) if sampling else _choose_likeliest
        choose = end_cancelled(end_after_stop(choose, self.tokenizer, options.stop), cancelled)
        limits = [options.max_tokens] * len(rows)
        return (
            yield from decode_steps(
                lambda latest, open_rows: choose(stepper.step(latest), open_rows),
                stepper.select,
                limits,
                0.0,
                _SPECIAL_IDS,
            )
        )

    def stepper(self, contexts: Sequence[Sequence[int]], most: int) -> TextStepper:
        """Return the stepper that starts with these contexts, and appends at most `most` tokens to each."""
        if (native := self.native) is not None:
            return NativeTextStepper(native, contexts, self.window, most)
        stepper: TextStepper = torch_module("language_model", "The model itself").array_stepper(
            self.model, contexts, self.window
        )
        return stepper

    def generation(self, output: Hypothesis, stops: Sequence[str]) -> Generation:
        """Return an output of the search as text."""
        whole, broken = self.tokenizer.whole_characters(output.tokens)
        full_text = self.tokenizer.decode(whole)
        text = text_before_stop(full_text, stops)
        ended: Ended = "end" if output.ended else "length" if text is None else "stop"
        return Generation(
            text=full_text if text is None else text,
            tokens=self.tokenizer.pieces(with_end_mark(output)),
            token_scores=list(output.token_scores),
            log_probability=output.log_probability,
            ended=ended,
            warnings=["broken-character"] * bool(broken),
        )


def _choose_likeliest(
    log_probs: NDArray[np.float64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return likeliest(log_probs, SUPPRESSED_IDS)


def _cancelled_rows(cancelled: Cancelled, indices: Sequence[int], samples: int) -> Cancelled:
    """Return the callback for a batch of some of the prompts, each of which has `samples` rows."""
    if cancelled is never_cancelled:
        return never_cancelled
    first_rows = {index: number * samples for number, index in enumerate(indices)}
    return lambda: [
        first_rows[index] + sample for index in cancelled() if index in first_rows for sample in range(samples)
    ]


def first_token(config: Config, tokenizer: Tokenizer) -> int:
    r"""Return the first context token of an empty prompt: the end mark, or "\n" if the documents were files."""
    (line_end,) = tokenizer.encode(["\n"])
    known = config.data.documents == "file" and len(line_end) == 1 and line_end != [UNK]
    return line_end[0] if known else EOS
