"""`serve`: an HTTP server for runs. `keys`: the API keys of a server."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import strftime

import click

from manyheads.cli.verbs import Verb, VerbGroup, device_option, echo_json, json_option, option, settings_of
from manyheads.errors import require

__all__ = ["VERBS"]

REQUIRED_MODULES = ("starlette", "uvicorn", "httptools", "python_multipart", "prometheus_client")  # extra serve


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
@option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on.")
@option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=5000,
    help="Port to listen on; 0 picks a free port.",
)
@option("--public", is_flag=True, help="Allow a --host that other machines can reach without requiring keys.")
@option(
    "--keys",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Require an API key of this file, made by `manyheads keys`.",
)
@option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    show_default="any name; on a loopback address only the machine's own",
    help="Host name that clients may use (Host header); may be repeated.",
)
@option(
    "--cors-origin",
    "cors_origins",
    multiple=True,
    metavar="ORIGIN",
    help="Web origin whose pages may read responses (CORS); * allows all; may be repeated.",
)
@option(
    "--trust-forwarded-for",
    is_flag=True,
    help="Take client addresses from X-Forwarded-For; safe only behind a reverse proxy.",
)
@option(
    "--metrics-token",
    envvar="MANYHEADS_METRICS_TOKEN",
    show_envvar=True,
    metavar="TOKEN",
    help="Enable /metrics for requests with this token; the environment variable keeps it out of process lists.",
)
@option("--char-limit", type=click.IntRange(1), metavar="N", default=5_000, help="Maximum characters per request.")
@option("--batch-limit", type=click.IntRange(1), metavar="N", default=64, help="Maximum texts per request.")
@option(
    "--alternatives-limit",
    type=click.IntRange(0),
    metavar="N",
    default=10,
    help="Maximum alternative translations per text.",
)
@option(
    "--body-limit",
    type=click.IntRange(1),
    metavar="BYTES",
    default=2**20,
    help="Maximum size of a request body in bytes.",
)
@option(
    "--queue",
    type=click.IntRange(1),
    metavar="N",
    default=64,
    help="Maximum requests waiting or running; further requests are answered with status 503.",
)
@option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=30.0,
    help="Request timeout in seconds.",
)
@option(
    "--req-limit",
    type=click.IntRange(0),
    metavar="N",
    show_default="120; unlimited on a loopback address",
    help="Maximum requests per minute for one key or client address; 0 is unlimited.",
)
@option(
    "--max-batch-tokens",
    type=click.IntRange(1),
    metavar="N",
    default=4_096,
    help="Maximum size of a batch: source tokens x beam size.",
)
@option(
    "--max-wait-ms",
    type=click.FloatRange(min=0),
    metavar="MS",
    default=2.0,
    help="Maximum batching delay in milliseconds.",
)
@option("--engine", type=click.Choice(["torch", "ctranslate2"]), default="torch", help="Inference engine.")
@option(
    "--precision",
    type=click.Choice(["fp32", "bf16", "int8"]),
    default="fp32",
    help="Number format of the torch engine; fp32 is exact, bf16 and int8 are faster.",
)
@device_option()
@click.pass_context
def serve(context: click.Context, /, runs: tuple[Path, ...], **options: object) -> None:
    """Serve translators through LibreTranslate's REST interface, and classifiers and language models beside them.

    The server listens on this machine only, unless --host names another address. Logs go to stderr and hold no
    text of any request. After SIGTERM or Ctrl-C the server finishes running requests, then stops.
    """
    for module in REQUIRED_MODULES:
        require(module, extra="serve", purpose="The server")
    from manyheads.serving.server import serve as run
    from manyheads.serving.settings import ServeSettings

    settings = ServeSettings(**options)  # type: ignore[arg-type]  # click has checked the types
    quiet, lock = settings_of(context).quiet, threading.Lock()

    def log(line: str) -> None:
        if quiet:
            return
        with lock, suppress(OSError, ValueError):  # stderr may be closed
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
    """Create, list and remove the API keys of a server; FILE stores only their hashes."""


@keys.command("add", cls=Verb, epilog="\b\nExample:\n  manyheads keys add keys.json weblate --req-limit 600")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
@option(
    "--req-limit",
    type=click.IntRange(0),
    metavar="N",
    show_default="--req-limit of the server",
    help="Maximum requests per minute with this key; 0 is unlimited.",
)
def add(file: Path, name: str, req_limit: int | None) -> None:
    """Create a key named NAME and print it; it cannot be shown again.

    A running server accepts the key within a second.
    """
    from manyheads.serving.keys import KeyFile

    click.echo(KeyFile(file).add(name, req_limit))


@keys.command("list", cls=Verb, epilog="\b\nExample:\n  manyheads keys list keys.json")
@click.argument("file", type=click.Path(path_type=Path))
@json_option()
def show(file: Path, as_json: bool) -> None:
    """List the names and request limits of the keys."""
    from manyheads.serving.keys import KeyFile

    listed = KeyFile(file).read()
    if as_json:
        echo_json([{"name": key.name, "req_limit": key.req_limit} for key in listed])
        return
    for key in listed:
        limit = "" if key.req_limit is None else f"  {key.req_limit or 'any number of'} requests a minute"
        click.echo(f"{key.name}{limit}")


@keys.command("remove", cls=Verb, epilog="\b\nExample:\n  manyheads keys remove keys.json weblate")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Remove a key; a running server rejects it within a second."""
    from manyheads.serving.keys import KeyFile

    KeyFile(file).remove(name)


VERBS = {"serve": serve, "keys": keys}
