"""`generate`: continue prompts with a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import click

from manyheads.cli.options import (
    COUNT,
    NOT_NEGATIVE,
    PATH,
    AsJson,
    Device,
    Output,
    Run,
    field_option,
    gather,
    option,
    pass_options,
)
from manyheads.cli.streams import input_lines, numbers_text, open_output, write_json
from manyheads.cli.verbs import verb, warn
from manyheads.errors import UsageError
from manyheads.search.options import Sampling

if TYPE_CHECKING:
    from manyheads.inference.generator import GenerateOptions, Generator

_SEPARATOR = "---"  # line between two texts


def _make_sampling(temperature: float, top_k: int, top_p: float, seed: int) -> Sampling | None:
    return Sampling(temperature, top_k, top_p, seed) if temperature else None


_field = partial(field_option, Sampling)
_sampling_options = gather(
    _make_sampling,
    "sampling",
    _field("temperature", "X", type=click.FloatRange(min=0), note="; 0 always takes the likeliest token."),
    _field("top_k", "N", type=NOT_NEGATIVE),
    _field("top_p", "P", type=click.FloatRange(0, 1, min_open=True)),
    _field("seed", "N", type=NOT_NEGATIVE),
)


@dataclass(frozen=True)
class _GenerateOptions:
    run: Run
    file: Annotated[Path | None, click.argument("file", type=PATH, required=False)]
    prompt: Annotated[str | None, option("--prompt", metavar="TEXT", show_default="empty")]
    sampling: Annotated[Sampling | None, _sampling_options]
    max_tokens: Annotated[int, option("--max-tokens", type=COUNT, default=256)]
    stop: Annotated[tuple[str, ...], option("--stop", multiple=True, metavar="TEXT")]
    samples: Annotated[int, option("--samples", type=COUNT, default=1)]
    stream: Annotated[bool, option("--stream", is_flag=True)]
    device: Device
    output: Output
    as_json: AsJson


@verb("generate")
@pass_options(_GenerateOptions)
def generate(options: _GenerateOptions) -> None:
    """Generate text that continues --prompt, FILE ("-" is standard input) or, without either, an empty prompt.

    RUN is the run directory of a language model. FILE is a single prompt if the model was trained on whole files
    (data.documents = "file"); otherwise each line is a prompt. Each generated text is printed after its prompt; a
    line of --- separates the texts.
    """
    if options.file is not None and options.prompt is not None:
        raise click.UsageError("--prompt and FILE both set the prompt. Give one of them.")
    if options.stream and options.as_json:
        raise click.UsageError("--stream prints text as it is generated, not one JSON document.")
    if not all(options.stop):
        raise click.UsageError("--stop needs a text.")
    if options.sampling is None and options.samples > 1:
        raise click.UsageError("--temperature 0 always writes the same. With --samples, take one above 0.")

    from manyheads.inference.generator import GenerateOptions, Generator

    wanted = GenerateOptions(options.sampling, options.samples, options.max_tokens, options.stop)
    generator = Generator.load(options.run, device=options.device)
    prompts = [options.prompt or ""] if options.file is None else _read_prompts(generator, options.file)
    _warn_about_prompts(generator, prompts)
    if options.as_json:
        document = [continuation.to_json() for continuation in generator.generate(prompts, wanted)]
        with open_output(options.output) as sink:
            write_json(document, sink)
        return
    write = _stream_texts if options.stream else _complete_texts
    with open_output(options.output) as sink:
        _write_texts(write(generator, prompts, wanted), sink)


def _read_prompts(generator: Generator, file: Path) -> list[str]:
    """Return the prompts of a file: the whole file, or each of its lines (data.documents).

    Raises:
        UsageError: the file is empty.
        DataError: the file is missing, damaged or not UTF-8.
    """
    data = generator.config.data
    lines = list(input_lines(file))
    if not lines:
        raise UsageError(f"{file} holds no prompt. Leave it out to generate from an empty prompt.")
    return ["\n".join(lines)] if data.documents == "file" else lines


def _warn_about_prompts(generator: Generator, prompts: Sequence[str]) -> None:
    """Warn about prompts that are longer than the context window or hold unknown symbols."""
    cut, unknown = generator.unseen(prompts)
    if cut:
        subject = _prompts_text(cut, len(prompts))
        warn(f"{subject} longer than the {generator.window} tokens of the context window: only the end is read.")
    if unknown:
        subject = _prompts_text(unknown, len(prompts))
        warn(f"{subject} not all in the vocabulary: unknown symbols are read as <unk>.")


def _prompts_text(numbers: Sequence[int], count: int) -> str:
    """Return the subject of a warning about the prompts of these line numbers, out of `count` prompts."""
    if count == 1:
        return "the prompt is"
    return f"the prompts of lines {numbers_text(numbers)} are"


def _complete_texts(
    generator: Generator, prompts: Sequence[str], options: GenerateOptions
) -> Iterator[Iterator[str]]:
    for continuation in generator.generate(prompts, options):
        for sample in continuation.samples:
            yield iter([continuation.prompt, sample.text])


def _stream_texts(
    generator: Generator, prompts: Sequence[str], options: GenerateOptions
) -> Iterator[Iterator[str]]:
    for prompt in prompts:
        for sample in range(options.samples):
            yield chain([prompt], generator.stream(prompt, options, sample=sample))


def _write_texts(texts: Iterator[Iterator[str]], sink: BinaryIO) -> None:
    """Write the pieces of the texts as they arrive, with a separator line between two texts."""
    for number, pieces in enumerate(texts):
        if number:
            sink.write(f"{_SEPARATOR}\n".encode())
        for piece in pieces:
            sink.write(piece.encode(errors="replace"))
            sink.flush()
        sink.write(b"\n")
        sink.flush()


VERBS = {"generate": generate}
