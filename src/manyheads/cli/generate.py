"""`generate`: what a language model writes after the beginning of a text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.verbs import Verb, echo_json, input_lines, json_option, opened_output, output_option, settings_of
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.tasks.language_modeling import Continuation, GenerateOptions, Generator

__all__ = ["VERBS"]

BETWEEN = "---"  # a line between samples


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads generate runs/shakespeare-char --prompt "ROMEO:" --seed 7
  manyheads generate runs/mine --samples 3 --temperature 0.8 --top-k 40 --max-tokens 500
  manyheads generate runs/mine beginning.txt --stop "." --json""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--prompt", metavar="TEXT", help="How the text begins.  [default: as the model likes]")
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Less is bolder, more is wilder; 0 takes the likeliest token.",
)
@click.option("--top-k", type=click.IntRange(min=0), default=0, metavar="N", help="Draw from the N likeliest.")
@click.option(
    "--top-p",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    metavar="P",
    help="Draw from the fewest that hold a share of P.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of what is drawn.")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="N",
    help="The longest text.",
)
@click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be repeated.")
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Texts for each beginning.",
)
@click.option("--stream", is_flag=True, help="Print each token as it comes.")
@click.option("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1; auto takes a GPU.")
@output_option("texts")
@json_option()
@click.pass_context
def generate(
    context: click.Context,
    run: Path,
    file: Path | None,
    prompt: str | None,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    max_tokens: int,
    stop: tuple[str, ...],
    samples: int,
    stream: bool,
    device: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Go on with a text: with --prompt, with what stands in FILE ("-" is standard input), or from nothing.

    FILE is one beginning as a whole where the model has learnt from whole files (data.documents), and else one a
    line. Each text is printed with its beginning; a line of --- stands between several.
    """
    if file is not None and prompt is not None:
        raise click.UsageError("--prompt and FILE are two ways to begin. Give one.", context)
    if stream and as_json:
        raise click.UsageError("--stream prints text as it comes, not one JSON document.", context)
    if not all(stop):
        raise click.UsageError("--stop needs a text.", context)
    if temperature == 0 and samples > 1:
        raise click.UsageError("--temperature 0 always writes the same. With --samples, take one above 0.", context)

    from manyheads.search.options import Sampling
    from manyheads.tasks.language_modeling import GenerateOptions, Generator

    sampling = Sampling(temperature, top_k, top_p, seed) if temperature else None
    options = GenerateOptions(sampling=sampling, samples=samples, max_tokens=max_tokens, stop=stop)
    generator = Generator.load(run, device=device)
    prompts = [prompt or ""] if file is None else beginnings(generator, file)
    if output is not None and file is not None and output.exists() and file.exists() and output.samefile(file):
        raise UsageError(f"{output} is the input; write to another file.")
    if not settings_of(context).quiet:
        warn(generator, prompts)
    if as_json:
        found = [one.to_json() for one in generator.generate(prompts, options)]
        if output is None:
            echo_json(found)
            return
        with opened_output(output) as sink:
            sink.write(json.dumps(found, ensure_ascii=False, indent=2).encode() + b"\n")
        return
    with opened_output(output) as sink:
        write_texts(streamed(generator, prompts, options) if stream else whole(generator, prompts, options), sink)


def beginnings(generator: Generator, file: Path) -> list[str]:
    """The texts of a file to go on with."""
    data = generator.config.data
    lines = list(input_lines(file, data.invalid_utf8))
    if not lines:
        raise UsageError(f"{file} holds no line to begin with. Leave it out to begin with nothing.")
    return ["\n".join(lines)] if data.documents == "file" else lines


def warn(generator: Generator, prompts: Sequence[str]) -> None:
    """Tell on stderr what the model cannot see of the beginnings."""
    cut, unknown = generator.unseen(prompts)
    if cut:
        click.echo(
            f"warning: {described(cut, len(prompts))} longer than the {generator.window} tokens that the model "
            "looks at: it sees the end.",
            err=True,
        )
    if unknown:
        click.echo(
            f"warning: {described(unknown, len(prompts))} not all in the vocabulary: what is unknown is read as "
            "<unk>.",
            err=True,
        )


def described(numbers: Sequence[int], count: int) -> str:
    """Which of the beginnings."""
    if count == 1:
        return "the beginning is"
    shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
    return f"the beginnings of lines {shown} are"


def whole(generator: Generator, prompts: Sequence[str], options: GenerateOptions) -> Iterator[Iterator[str]]:
    """The texts, each in one piece."""
    found: list[Continuation] = generator.generate(prompts, options)
    for one in found:
        for sample in one.samples:
            yield iter([one.prompt, sample.text])


def streamed(generator: Generator, prompts: Sequence[str], options: GenerateOptions) -> Iterator[Iterator[str]]:
    """The texts, one after the other, each in pieces as they come."""
    for prompt in prompts:
        for sample in range(options.samples):
            yield prefixed(prompt, generator.stream(prompt, options, sample=sample))


def prefixed(prompt: str, pieces: Iterator[str]) -> Iterator[str]:
    """The beginning, then the pieces."""
    yield prompt
    yield from pieces


def write_texts(texts: Iterator[Iterator[str]], sink: BinaryIO) -> None:
    """Write the texts as they come, a line between them."""
    for number, pieces in enumerate(texts):
        if number:
            sink.write(f"{BETWEEN}\n".encode())
        for piece in pieces:
            sink.write(piece.encode(errors="replace"))
            sink.flush()
        sink.write(b"\n")
        sink.flush()


VERBS = {"generate": generate}
