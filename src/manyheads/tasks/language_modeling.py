"""A trained language model: the beginning of a text in, what it writes after it out (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Generator as Steady
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import torch

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.sampler import fixed_batches
from manyheads.interop.huggingface import assemble_for, is_pretrained
from manyheads.interop.sources import folder_of
from manyheads.model.continuation import DecoderOnlyStepper
from manyheads.model.decoder_only import DecoderOnly
from manyheads.search.abandoning import AbandoningStepper
from manyheads.search.greedy import Steps, follow, greedy_choice, results
from manyheads.search.interface import Abandoned, Hypothesis, Stepper, nobody
from manyheads.search.sampling import sampling_choice
from manyheads.tasks.generation import Continuation, Ended, GenerateOptions, Generation
from manyheads.tasks.stopping import before_stop, stopping, until_stop
from manyheads.text.incremental import growing_text
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from manyheads.training.precision import pick_device

__all__ = ["Continuation", "GenerateOptions", "Generation", "Generator", "first_token"]

SILENT = (UNK, PAD, BOS)  # ids that never come out

DEFAULTS = GenerateOptions()


class Generator:
    """A language model and its tokenizer.

    What is written after a beginning depends on the beginning, the options and the number of the sample alone: not
    on the beginnings beside it, their number or their order.

    Attributes:
        config: of the run; `data.max_length` and `data.documents` are used.
        tokenizer: of the text.
        model: in evaluation mode while it writes, else as it was.
    """

    def __init__(self, config: Config, tokenizer: Tokenizer, model: DecoderOnly) -> None:
        """From parts in memory; `load` opens a run."""
        self.config = config
        self.tokenizer = tokenizer
        self.model = model
        self.window = window_of(config)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "auto") -> Self:
        """Open a run directory.

        Args:
            run: the directory.
            device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.

        Raises:
            RunError: the directory is missing, none of ours, damaged, or holds another kind of model.
        """
        place = pick_device(device)
        directory = RunDirectory.existing(Path(run))
        config = directory.config_of("language-modeling")
        tokenizer = directory.tokenizers(config).target
        model = directory.fill(DecoderOnly(config.model, tokenizer.size, absent=tokenizer.absent))
        return cls(config, tokenizer, model.to(place))

    @classmethod
    def from_pretrained(cls, name: str, *, device: str = "auto") -> Self:
        """Open a language model by its name on the Hugging Face hub (extra hf), or a folder: a run, or a GPT-2.

        Args:
            name: user/name, or the folder.
            device: as `load`.

        Raises:
            RunError: there is no such language model, or it cannot be read.
            MissingExtraError: a name on the hub without huggingface_hub.
        """
        folder = folder_of(name)
        if not is_pretrained(folder):
            return cls.load(folder, device=device)
        made = assemble_for("language-modeling", folder)
        assert isinstance(made.model, DecoderOnly)
        return cls(made.config, made.tokenizer, made.model.to(pick_device(device)))

    def generate(
        self,
        prompts: Sequence[str] = ("",),
        options: GenerateOptions = DEFAULTS,
        abandoned: Abandoned = nobody,
    ) -> list[Continuation]:
        """Go on after each beginning; an empty one lets the model begin by itself.

        Args:
            prompts: the beginnings.
            options: how to go on.
            abandoned: beginnings that need not be finished; what is returned for them means nothing.

        Raises:
            UsageError: one string was given in the place of a list of them.
        """
        contexts = self.contexts(prompts)
        found: list[list[Hypothesis]] = [[] for _ in prompts]
        with self.evaluating():
            for places in self.batches(contexts, options.samples):
                rows = [(sample, contexts[place]) for place in places for sample in range(options.samples)]
                hypotheses = results(self.write(rows, options, rows_of(abandoned, places, options.samples)))
                for number, place in enumerate(places):
                    first = number * options.samples
                    found[place] = hypotheses[first : first + options.samples]
        return [
            Continuation(
                prompt,
                [self.generation(one, options.stop) for one in of_prompt],
                truncated=len(context) > self.window,
                unknown=context.count(UNK),
            )
            for prompt, context, of_prompt in zip(prompts, contexts, found, strict=True)
        ]

    def stream(
        self, prompt: str = "", options: GenerateOptions = DEFAULTS, *, sample: int = 0
    ) -> Steady[str, None, Ended]:
        """What `generate` writes after a beginning as its sample of this number, in pieces as they come.

        Returns:
            When all pieces have been taken, what the text was ended by.
        """
        (context,) = self.contexts([prompt])
        whole: list[Hypothesis] = []

        def tokens() -> Iterator[int]:
            steps = self.write([(sample, context)], options)
            while True:
                try:
                    _, latest = next(steps)
                except StopIteration as end:
                    whole.extend(end.value)
                    return
                yield from latest

        with self.evaluating():
            yield from until_stop(growing_text(self.tokenizer, tokens()), options.stop)
        return self.generation(whole[0], options.stop).ended if whole else "stop"

    def unseen(self, prompts: Sequence[str]) -> tuple[list[int], list[int]]:
        """The numbers, from 1, of beginnings longer than the window, and of those with unknown tokens."""
        contexts = list(enumerate(self.contexts(prompts), start=1))
        cut = [number for number, context in contexts if len(context) > self.window]
        return cut, [number for number, context in contexts if UNK in context]

    def contexts(self, prompts: Sequence[str]) -> list[list[int]]:
        """What the model reads first, one token at the least."""
        first = first_token(self.config, self.tokenizer)
        if self.config.data.documents == "line":
            return [[first, *ids] for ids in self.tokenizer.encode(prompts)]
        return [ids or [first] for ids in self.tokenizer.encode(prompts)]

    def batches(self, contexts: Sequence[Sequence[int]], samples: int) -> Iterator[list[int]]:
        """The places of beginnings of like length that are continued together."""
        lengths = np.array([min(len(context), self.window) for context in contexts], dtype=np.int64)
        rows = max(1, self.config.search.batch_tokens // (self.window * samples))
        for batch in fixed_batches(lengths, self.config.search.batch_tokens):
            for first in range(0, len(batch), rows):
                yield batch[first : first + rows].tolist()

    @torch.no_grad()
    def write(
        self, rows: Sequence[tuple[int, list[int]]], options: GenerateOptions, abandoned: Abandoned = nobody
    ) -> Steps:
        """Write after each context, as the sample of this number, a step at a time."""
        contexts = [tuple(context) for _, context in rows]
        different = list(dict.fromkeys(contexts))
        stepper: Stepper = DecoderOnlyStepper(self.model, different, self.window)
        device = self.model.output.weight.device
        if len(different) < len(contexts):  # each is read once
            stepper.select(torch.tensor([different.index(context) for context in contexts], device=device))
        if abandoned is not nobody:
            stepper = AbandoningStepper(stepper, len(rows), abandoned, EOS)
        if options.sampling is None:
            choose = greedy_choice(SILENT)
        else:
            choose = sampling_choice(options.sampling, rows, forbidden=SILENT)
        return (
            yield from follow(
                stepper,
                stopping(choose, self.tokenizer, options.stop),
                max_lengths=torch.full((len(rows),), options.max_tokens, device=device),
                bos=EOS,
                eos=EOS,
                length_penalty=0.0,
            )
        )

    def generation(self, found: Hypothesis, stops: Sequence[str]) -> Generation:
        """An output of the search as text."""
        whole = self.tokenizer.decode(found.tokens)
        text = before_stop(whole, stops)
        ended: Ended = "end" if found.ended else "length" if text is None else "stop"
        return Generation(
            text=whole if text is None else text,
            tokens=self.tokenizer.pieces([*found.tokens, EOS] if found.ended else found.tokens),
            token_scores=list(found.token_scores),
            log_probability=found.log_probability,
            ended=ended,
        )

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """While open, the model is in evaluation mode."""
        was = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(was)


def rows_of(abandoned: Abandoned, places: Sequence[int], samples: int) -> Abandoned:
    """The rows of the abandoned ones of some beginnings, each of which has as many rows as samples."""
    if abandoned is nobody:
        return nobody
    numbers = {place: number * samples for number, place in enumerate(places)}
    return lambda: [numbers[place] + row for place in abandoned() if place in numbers for row in range(samples)]


def window_of(config: Config) -> int:
    """The most tokens that a model looks at: a block of its training."""
    return config.data.max_length


def first_token(config: Config, tokenizer: Tokenizer) -> int:
    r"""What stands before a text that nothing stands before: the end mark of another, or in a file a line end."""
    (line_end,) = tokenizer.encode(["\n"])
    known = config.data.documents == "file" and len(line_end) == 1 and line_end != [UNK]
    return line_end[0] if known else EOS
