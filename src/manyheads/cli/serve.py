"""`serve`: one's own models behind an address. `keys`: who may use it."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import strftime

import click

from manyheads.cli.verbs import Verb, VerbGroup, echo_json, json_option, settings_of
from manyheads.errors import require

__all__ = ["VERBS"]

EXTRA = ("starlette", "uvicorn", "httptools", "python_multipart")


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads serve runs/demo-de-en
  manyheads serve runs/de-en runs/en-de --engine ctranslate2 --port 8000
  manyheads serve runs/de-en --host 0.0.0.0 --keys keys.json
  curl http://127.0.0.1:5000/translate -d q="Guten Tag." -d source=de -d target=en""",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0 takes a free one.")
@click.option("--public", is_flag=True, help="Listen beyond this machine without keys.")
@click.option("--keys", type=click.Path(path_type=Path), metavar="FILE", help="Ask for a key (manyheads keys).")
@click.option("--host-name", "host_names", multiple=True, metavar="NAME", help="A name that clients call by.")
@click.option(
    "--cors-origin", "cors_origins", multiple=True, metavar="ORIGIN", help="Let web pages from there in; * is all."
)
@click.option(
    "--trust-forwarded-for", is_flag=True, help="Take addresses from X-Forwarded-For: behind a proxy only."
)
@click.option(
    "--metrics-token", envvar="MANYHEADS_METRICS_TOKEN", metavar="TOKEN",
    help="Show /metrics to who has it; better given as MANYHEADS_METRICS_TOKEN.",
)  # fmt: skip
@click.option(
    "--char-limit", type=click.IntRange(1), default=5_000, show_default=True, help="Characters a request."
)
@click.option("--batch-limit", type=click.IntRange(1), default=64, show_default=True, help="Texts a request.")
@click.option("--alternatives-limit", type=click.IntRange(0), default=10, show_default=True, help="Of a text.")
@click.option("--body-limit", type=click.IntRange(1), default=2**20, show_default=True, help="Bytes of a body.")
@click.option("--queue", type=click.IntRange(1), default=64, show_default=True, help="Requests at once; else 503.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds a request.",
)
@click.option(
    "--req-limit", type=click.IntRange(0), metavar="N",
    help="Requests a minute of a key or address, 0 any; without it 120, and any on loopback.",
)  # fmt: skip
@click.option(
    "--max-batch-tokens", type=click.IntRange(1), default=4_096, show_default=True, help="Decoded together, x beam."
)
@click.option(
    "--max-wait-ms",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    help="That a text waits for others.",
)
@click.option(
    "--engine",
    type=click.Choice(["torch", "ctranslate2"]),
    default="torch",
    show_default=True,
    help="What decodes.",
)
@click.option(
    "--precision", type=click.Choice(["fp32", "bf16", "int8"]), default="fp32", show_default=True, help="Of torch."
)
@click.option("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1; auto takes a GPU.")
@click.pass_context
def serve(context: click.Context, /, runs: tuple[Path, ...], **options: object) -> None:
    """Serve translators under LibreTranslate's REST interface, classifiers and language models beside them.

    Listens on this machine alone unless told otherwise. Logs go to stderr, without any text of a request. SIGTERM
    and Ctrl-C let what runs come to its end.
    """
    for module in EXTRA:
        require(module, extra="serve", purpose="The server")
    from manyheads.serving.server import serve as run
    from manyheads.serving.settings import ServeSettings

    settings = ServeSettings(**options)  # type: ignore[arg-type]  # click has checked the types
    quiet, writing = settings_of(context).quiet, threading.Lock()

    def log(line: str) -> None:
        if quiet:
            return
        with writing, suppress(OSError, ValueError):  # who read it may have gone
            sys.stderr.write(f"{strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
            sys.stderr.flush()

    run(runs, settings, log)


@click.group(
    cls=VerbGroup,
    epilog="""\b
Examples:
  manyheads keys add keys.json weblate
  manyheads keys list keys.json
  manyheads keys remove keys.json weblate""",
)
def keys() -> None:
    """Who may use a server: keys in a FILE, of which only hashes are kept."""


@keys.command("add", cls=Verb, epilog="\b\nExample:\n  manyheads keys add keys.json weblate --req-limit 600")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--req-limit", type=click.IntRange(0), metavar="N", help="Requests a minute, 0 any number.")
def add(file: Path, name: str, req_limit: int | None) -> None:
    """Make a key named NAME and print it, once: it cannot be seen again. A running server knows it in a second."""
    from manyheads.serving.keys import KeyFile

    click.echo(KeyFile(file).add(name, req_limit))


@keys.command("list", cls=Verb, epilog="\b\nExample:\n  manyheads keys list keys.json")
@click.argument("file", type=click.Path(path_type=Path))
@json_option()
def show(file: Path, as_json: bool) -> None:
    """List the names of the keys, and what each may ask."""
    from manyheads.serving.keys import KeyFile

    found = KeyFile(file).read()
    if as_json:
        echo_json([{"name": key.name, "req_limit": key.req_limit} for key in found])
        return
    for key in found:
        limit = "" if key.req_limit is None else f"  {key.req_limit or 'any number of'} requests a minute"
        click.echo(f"{key.name}{limit}")


@keys.command("remove", cls=Verb, epilog="\b\nExample:\n  manyheads keys remove keys.json weblate")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Forget a key; a running server refuses it a second later."""
    from manyheads.serving.keys import KeyFile

    KeyFile(file).remove(name)


VERBS = {"serve": serve, "keys": keys}
