"""`serve`: an HTTP server for runs. `serve keys`: the API keys of a server."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import strftime

import click

from manyheads.cli.options import (
    COUNT,
    ENGINE,
    NOT_NEGATIVE,
    OUTPUT,
    PATH,
    device_option,
    field_option,
    json_option,
    option,
)
from manyheads.cli.streams import refuse_closed
from manyheads.cli.verbs import current_settings, echo, verb, verb_group, verb_with_subverbs
from manyheads.errors import require
from manyheads.serving.settings import ServeSettings

_REQUIRED_MODULES = ("starlette", "uvicorn", "httptools", "python_multipart", "prometheus_client")  # extra serve


@verb_with_subverbs("serve")
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@field_option(ServeSettings, "host", "ADDRESS")
@field_option(ServeSettings, "port", "PORT", type=click.IntRange(0, 65535))
@field_option(ServeSettings, "public")
@field_option(ServeSettings, "keys", "FILE", type=PATH)
@field_option(
    ServeSettings,
    "host_names",
    "NAME",
    flag="--host-name",
    multiple=True,
    show_default="any name; on a loopback address only the machine's own",
)
@field_option(ServeSettings, "cors_origins", "ORIGIN", flag="--cors-origin", multiple=True)
@field_option(ServeSettings, "suggestions", "FILE", type=OUTPUT)
@field_option(ServeSettings, "trust_forwarded_for")
@field_option(ServeSettings, "metrics_token", "TOKEN", envvar="MANYHEADS_METRICS_TOKEN", show_envvar=True)
@field_option(ServeSettings, "char_limit", "N", type=COUNT)
@field_option(ServeSettings, "batch_limit", "N", type=COUNT)
@field_option(ServeSettings, "alternatives_limit", "N", type=NOT_NEGATIVE)
@field_option(ServeSettings, "body_limit", "BYTES", type=COUNT)
@field_option(ServeSettings, "queue", "N", type=COUNT)
@field_option(ServeSettings, "timeout", "SECONDS", type=click.FloatRange(min=0, min_open=True))
@field_option(ServeSettings, "keep_alive", "SECONDS", type=COUNT)
@field_option(
    ServeSettings,
    "req_limit",
    "N",
    type=NOT_NEGATIVE,
    show_default="120; unlimited on a loopback address without --trust-forwarded-for",
)
@field_option(ServeSettings, "max_batch_tokens", "N", type=COUNT)
@field_option(ServeSettings, "max_wait_ms", "MS", type=click.FloatRange(min=0))
@field_option(ServeSettings, "beam", "N", type=COUNT, show_default="search.beam_size of the run")
@field_option(ServeSettings, "glossary", "FILE", type=PATH)
@field_option(ServeSettings, "match_source", flag="--match-source/--no-match-source")
@field_option(ServeSettings, "engine", type=ENGINE)
@field_option(ServeSettings, "precision", type=click.Choice(["fp32", "bf16", "int8"]))
@device_option
def serve(runs: tuple[Path, ...], **options: object) -> None:
    """Serve translators through LibreTranslate's REST interface, and classifiers and language models beside them.

    Two translators that meet in a language also serve their two outer languages by way of it: de-en and en-fr give
    de-fr. /languages and the answers name the language between them.

    The server listens on this machine only, unless --host names another address. Logs go to stderr and hold no
    text of any request. After SIGTERM or Ctrl-C the server finishes running requests, then stops.
    """
    for module in _REQUIRED_MODULES:
        require(module, extra="serve", purpose="The server")
    from manyheads.serving.server import serve as run

    settings = ServeSettings(**options)  # type: ignore[arg-type]  # click has checked the types
    quiet, lock = current_settings().quiet, threading.Lock()

    def log(line: str) -> None:
        if quiet:
            return
        with lock, suppress(OSError, ValueError):  # stderr may be closed
            sys.stderr.write(f"{strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
            sys.stderr.flush()

    run(runs, settings, log)


@verb_group("serve keys", serve)
def keys() -> None:
    """Create, list and remove the API keys of a server; FILE stores only their hashes."""


@verb("serve keys add", keys)
@click.argument("file", type=PATH)
@click.argument("name")
@option(
    "--req-limit",
    type=click.IntRange(0),
    show_default="--req-limit of the server",
    help="Maximum requests per minute with this key; 0 is unlimited.",
)
def add(file: Path, name: str, req_limit: int | None) -> None:
    """Create a key named NAME and print it; it cannot be shown again.

    A running server accepts the key within a second.
    """
    from manyheads.serving.keys import KeyFile

    refuse_closed(sys.stdout, "output", "> FILE")
    KeyFile(file).add(name, req_limit, show=click.echo)


@verb("serve keys list", keys)
@click.argument("file", type=PATH)
@json_option
def show(file: Path, as_json: bool) -> None:
    """List the names and request limits of the keys."""
    from manyheads.serving.keys import KeyFile

    listed = KeyFile(file).read()
    lines = [
        key.name if key.req_limit is None else f"{key.name}  {key.req_limit or 'any number of'} requests a minute"
        for key in listed
    ]
    echo([{"name": key.name, "req_limit": key.req_limit} for key in listed], lines, as_json=as_json)


@verb("serve keys remove", keys)
@click.argument("file", type=PATH)
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Remove a key; a running server rejects it within a second."""
    from manyheads.serving.keys import KeyFile

    KeyFile(file).remove(name)


VERBS = {"serve": serve}
