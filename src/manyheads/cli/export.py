"""`export`, `import` and `push`: exchange models with other programs and the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

import click

from bitext.shell import command_line
from manyheads.cli.options import (
    OUTPUT,
    json_option,
    language_option,
    option,
    run_argument,
    run_output_option,
)
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import announce_loading, current_settings, echo, echo_result, translate_card, verb
from manyheads.errors import UsageError

_FORMATS = ["ctranslate2", "argos", "huggingface", "sentence-transformers", "html", "javascript"]
_QUANTIZATIONS = [
    "float32",
    "int8",
    "int8_float32",
    "int8_bfloat16",
    "int8_float16",
    "bfloat16",
    "float16",
    "int16",
]


@verb("export")
@run_argument
@click.argument("dest", type=OUTPUT, required=False)
@option("--to", type=click.Choice(_FORMATS), required=True, help="Format to write, named after the program.")
@option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="DEST",
    help="DEST as an option: a new directory; for argos, a file .argosmodel; for html, a file .html.",
)
@option(
    "--quantization",
    type=click.Choice(_QUANTIZATIONS),
    show_default="float32; int8 for argos, html and javascript",
    help="Number format of the stored weight matrices.",
)
@option(
    "--package-version",
    metavar="VERSION",
    show_default="100.0",
    help="Version of an Argos package. LibreTranslate may replace a package by one with a higher version.",
)
@option(
    "--project-url",
    metavar="URL",
    default="",
    show_default=False,
    help="Web address of your project, for the footer of a page (html).",
)
@json_option
def export(
    run: Path,
    dest: Path | None,
    to: str,
    output: Path | None,
    quantization: str | None,
    package_version: str | None,
    project_url: str,
    as_json: bool,
) -> None:
    """Convert RUN to the format of another program, write it to DEST, and compare the outputs of both.

    The format html is one file that computes and shows the model in a browser, without a server and offline;
    javascript is a module with types for pages of your own.

    DEST is written only if the outputs agree. If it is quantized, for ctranslate2 or argos, the output ends with
    the command that scores RUN and DEST, and tests the difference.
    """
    destination = output or dest
    if destination is None or (output and dest):
        example = command_line("manyheads", "export", run, "--to", to, "-o", "DEST")
        raise UsageError(f"Say once where to write the export, as in {example}.")
    announce_loading()
    from manyheads.inference.export_formats import FORMATS
    from manyheads.web.html_export import export_for_browsers

    with progress_display() as progress:
        if FORMATS[to].for_browsers:
            result = export_for_browsers(run, destination, to, quantization, listener=progress, project=project_url)
        elif project_url:
            raise UsageError("--project-url is the footer of a page. Leave it out, or use --to html.")
        else:
            from manyheads.runs.export import export as export_run  # imports torch

            result = export_run(
                run,
                destination,
                to,
                quantization=quantization,
                package_version=package_version,
                language=current_settings().language or "en",
                listener=progress,
            )
    translate_card(destination)
    echo_result(result, as_json=as_json)


@verb("import")
@click.argument("model", type=click.Path())
@run_output_option("runs/ and the name of MODEL")
@language_option("--source", "as the model states", "Source language of a translation model, such as de.")
@language_option("--target", "as the model states", "Target language of a translation model, such as en.")
@language_option("--language", None, "Language of the text of a classifier or language model, such as en.")
@option(
    "--labels", metavar="A,B", help="Add a new classification head with these labels to an encoder without a head."
)
@option(
    "--trust-pickle",
    is_flag=True,
    help="Read weights from a pickle file; use this only if you trust the author of the model.",
)
@json_option
def import_(
    model: str,
    output: Path | None,
    source: str | None,
    target: str | None,
    language: str | None,
    labels: str | None,
    trust_pickle: bool,
    as_json: bool,
) -> None:
    """Import a pretrained model as a run, and compare the outputs of both.

    MODEL is a directory, or user/name on the Hugging Face hub (extra hf): MarianMT (opus-mt), BERT, DistilBERT,
    RoBERTa or GPT-2. With --labels, an encoder without a head becomes a classifier; train its new head before
    you use it. MODEL may also be an Argos package (.argosmodel), or a CTranslate2 directory of an
    encoder-decoder with its SentencePiece models, or merges with @@; the comparison needs the extra ct2.
    """
    from manyheads.runs.import_model import import_model

    with progress_display() as progress:
        imported = import_model(
            model,
            output or Path("runs", Path(model).absolute().name.removesuffix(".argosmodel")),
            source=source,
            target=target,
            language=language,
            labels=[label.strip() for label in (labels or "").split(",") if label.strip()],
            trust_pickle=trust_pickle,
            listener=progress,
        )
    translate_card(imported.out)
    echo_result(imported, as_json=as_json)


@verb("push")
@run_argument
@click.argument("name")
@option("--private", is_flag=True, help="Create the repository as private, if it does not exist yet.")
@json_option
def push(run: Path, name: str, private: bool, as_json: bool) -> None:
    """Upload the model of RUN to the Hugging Face hub as NAME, in the form user/name (extra hf).

    The README.md of RUN must name a licence.
    """
    from manyheads.runs.export import push as push_run

    with progress_display() as progress:
        address = push_run(run, name, private=private, listener=progress)
    echo({"run": str(run), "name": name, "address": address}, [f"{run}: {address}"], as_json=as_json)


VERBS = {"export": export, "import": import_, "push": push}
