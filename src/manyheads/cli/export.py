"""`export`, `import` and `push`: exchange models with other programs and the Hugging Face hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from bitext.shell import command_line
from manyheads.cli.options import OUTPUT, AsJson, Run, language_option, option, pass_options, run_output_option
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import announce_loading, current_settings, echo, translate_card, verb
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


@dataclass(frozen=True)
class _ExportOptions:
    run: Run
    dest: Annotated[Path | None, click.argument("dest", type=OUTPUT, required=False)]
    to: Annotated[str, option("--to", type=click.Choice(_FORMATS), required=True)]
    output: Annotated[Path | None, option("-o", "--output", type=OUTPUT, metavar="DEST")]
    quantization: Annotated[
        str | None,
        option(
            "--quantization",
            type=click.Choice(_QUANTIZATIONS),
            show_default="float32; int8 for argos, html and javascript",
        ),
    ]
    package_version: Annotated[str | None, option("--package-version", metavar="VERSION", show_default="100.0")]
    project_url: Annotated[str, option("--project-url", metavar="URL", default="", show_default=False)]
    as_json: AsJson


@verb("export")
@pass_options(_ExportOptions)
def export(options: _ExportOptions) -> None:
    """Convert RUN to the format of another program, write it to DEST, and compare the outputs of both.

    The format html is one file that computes and shows the model in a browser, without a server and offline;
    javascript is a module with types for pages of your own.

    DEST is written only if the outputs agree. If it is quantized, for ctranslate2 or argos, the output ends with
    the command that scores RUN and DEST, and tests the difference.
    """
    run, destination, to = options.run, options.output or options.dest, options.to
    if destination is None or (options.output and options.dest):
        example = command_line("manyheads", "export", run, "--to", to, "-o", "DEST")
        raise UsageError(f"Say once where to write the export, as in {example}.")
    announce_loading()
    from manyheads.inference.export_formats import FORMATS
    from manyheads.web.html_export import export_for_browsers

    with progress_display() as progress:
        if FORMATS[to].for_browsers:
            result = export_for_browsers(
                run, destination, to, options.quantization, listener=progress, project=options.project_url
            )
        elif options.project_url:
            raise UsageError("--project-url is the footer of a page. Leave it out, or use --to html.")
        else:
            from manyheads.runs.export import export as export_run  # imports torch

            result = export_run(
                run,
                destination,
                to,
                quantization=options.quantization,
                package_version=options.package_version,
                language=current_settings().language or "en",
                listener=progress,
            )
    translate_card(destination)
    echo(result.to_json(), result.lines(), as_json=options.as_json)


@dataclass(frozen=True)
class _ImportOptions:
    model: Annotated[str, click.argument("model", type=click.Path())]
    output: Annotated[Path | None, run_output_option("runs/ and the name of MODEL")]
    source: Annotated[str | None, language_option("--source", show_default="as the model states")]
    target: Annotated[str | None, language_option("--target", show_default="as the model states")]
    language: Annotated[str | None, language_option("--language")]
    labels: Annotated[str | None, option("--labels", metavar="A,B")]
    trust_pickle: Annotated[bool, option("--trust-pickle", is_flag=True)]
    as_json: AsJson


@verb("import")
@pass_options(_ImportOptions)
def import_(options: _ImportOptions) -> None:
    """Import a pretrained model as a run, and compare the outputs of both.

    MODEL is a directory, or user/name on the Hugging Face hub (extra hf): MarianMT (opus-mt), BERT, DistilBERT,
    RoBERTa or GPT-2. With --labels, an encoder without a head becomes a classifier; train its new head before
    you use it. MODEL may also be an Argos package (.argosmodel), or a CTranslate2 directory of an
    encoder-decoder with its SentencePiece models, or merges with @@; the comparison needs the extra ct2.
    """
    from manyheads.runs.import_model import import_model

    with progress_display() as progress:
        imported = import_model(
            options.model,
            options.output or Path("runs", Path(options.model).absolute().name.removesuffix(".argosmodel")),
            source=options.source,
            target=options.target,
            language=options.language,
            labels=[label.strip() for label in (options.labels or "").split(",") if label.strip()],
            trust_pickle=options.trust_pickle,
            listener=progress,
        )
    translate_card(imported.out)
    echo(imported.to_json(), imported.lines(), as_json=options.as_json)


@dataclass(frozen=True)
class _PushOptions:
    run: Run
    name: Annotated[str, click.argument("name")]
    private: Annotated[bool, option("--private", is_flag=True)]
    as_json: AsJson


@verb("push")
@pass_options(_PushOptions)
def push(options: _PushOptions) -> None:
    """Upload the model of RUN to the Hugging Face hub as NAME, in the form user/name (extra hf).

    The README.md of RUN must name a licence.
    """
    from manyheads.runs.export import push as push_run

    with progress_display() as progress:
        address = push_run(options.run, options.name, private=options.private, listener=progress)
    document = {"run": str(options.run), "name": options.name, "address": address}
    echo(document, [f"{options.run}: {address}"], as_json=options.as_json)


VERBS = {"export": export, "import": import_, "push": push}
