"""`export`, `import` and `push`: models to other programs and from them."""

from __future__ import annotations

from pathlib import Path

import click

from manyheads.cli.verbs import Verb, echo_json, echo_result, json_option, settings_of

__all__ = ["VERBS"]

FORMATS = ["ctranslate2", "argos", "huggingface", "onnx", "sentence-transformers"]
NUMBERS = ["float32", "int8", "int8_float32", "int8_bfloat16", "int8_float16", "bfloat16", "float16", "int16"]
FOLDER = click.Path(path_type=Path)


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads export runs/mine --to ctranslate2 exported/mine --quantization int8
  manyheads export runs/mine --to argos mine.argosmodel
  manyheads export runs/mine --to huggingface exported/mine-marian
  manyheads export runs/mine --to onnx exported/mine-onnx
  manyheads export runs/sentiment --to sentence-transformers exported/sentiment""",
)
@click.argument("run", type=FOLDER)
@click.argument("out", type=FOLDER)
@click.option("--to", type=click.Choice(FORMATS), required=True, help="The program that shall open it.")
@click.option(
    "--quantization",
    type=click.Choice(NUMBERS),
    help="Number type of the stored matrices.  [default: float32; for argos int8]",
)
@click.option("--force", is_flag=True, help="Keep a quantized export that costs over 1 BLEU or 0.1 nats a token.")
@json_option()
@click.pass_context
def export(
    context: click.Context, run: Path, out: Path, to: str, quantization: str | None, force: bool, as_json: bool
) -> None:
    """Write RUN as OUT for another program, and compare both.

    OUT is a new folder, or for argos a file that ends in .argosmodel. What does not give what the run gives is not
    kept. What quantization costs on this machine is measured on the run's validation text.
    """
    from manyheads import runs
    from manyheads.cli.progress import open_progress

    with open_progress(settings_of(context)) as progress:
        result = runs.export(run, out, to, quantization=quantization, force=force, listener=progress)
    echo_result(result, as_json=as_json)


@click.command(
    name="import",
    cls=Verb,
    epilog="""\b
Examples:
  manyheads import Helsinki-NLP/opus-mt-de-en runs/opus-de-en
  manyheads import folders/opus-mt-de-en runs/opus-de-en --source de --target en
  manyheads import folders/gpt2 runs/gpt2 --language en
  manyheads import folders/bert-sst2 runs/sentiment --language en""",
)
@click.argument("model")
@click.argument("out", type=FOLDER)
@click.option("--source", metavar="LANGUAGE", help="Language translated from.  [default: what the model says]")
@click.option("--target", metavar="LANGUAGE", help="Language translated into.  [default: what the model says]")
@click.option("--language", metavar="LANGUAGE", help="Language of the text, where nothing is translated.")
@click.option("--labels", metavar="A,B", help="Make a classifier of an encoder without a head.")
@click.option("--trust-pickle", is_flag=True, help="Read weights that are a pickle; only from somebody you trust.")
@json_option()
def import_(
    model: str,
    out: Path,
    source: str | None,
    target: str | None,
    language: str | None,
    labels: str | None,
    trust_pickle: bool,
    as_json: bool,
) -> None:
    """Make a run directory OUT of a model of transformers, and compare both.

    MODEL is a folder, or user/name on the Hugging Face hub (extra hf): MarianMT (opus-mt), BERT, DistilBERT,
    RoBERTa or GPT-2. An encoder without a head becomes a classifier with --labels; its head is new, and must
    be trained.
    """
    from manyheads import runs

    found = runs.bring(
        model,
        out,
        source=source,
        target=target,
        language=language,
        labels=[label.strip() for label in (labels or "").split(",") if label.strip()],
        trust_pickle=trust_pickle,
    )
    echo_result(found, as_json=as_json)


@click.command(
    cls=Verb,
    epilog="""\b
Example:
  manyheads push runs/mine somebody/de-en --private""",
)
@click.argument("run", type=FOLDER)
@click.argument("name")
@click.option("--private", is_flag=True, help="Only for you, when the hub has no such name yet.")
@json_option()
@click.pass_context
def push(context: click.Context, run: Path, name: str, private: bool, as_json: bool) -> None:
    """Put the model of RUN on the Hugging Face hub as user/name (extra hf).

    Its README.md must name a licence.
    """
    from manyheads import runs
    from manyheads.cli.progress import open_progress

    with open_progress(settings_of(context)) as progress:
        address = runs.push(run, name, private=private, listener=progress)
    if as_json:
        echo_json({"run": str(run), "name": name, "address": address})
    else:
        click.echo(f"{run}: {address}")


VERBS = {"export": export, "import": import_, "push": push}
