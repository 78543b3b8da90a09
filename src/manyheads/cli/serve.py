"""`serve`: an HTTP server for runs. `serve keys`: the API keys of a server."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import strftime

import click

from manyheads.cli.options import COUNT, ENGINE, NOT_NEGATIVE, OUTPUT, PATH, field_option, gather, option
from manyheads.cli.streams import refuse_closed
from manyheads.cli.verbs import current_settings, echo, verb, verb_group, verb_with_subverbs
from manyheads.errors import require
from manyheads.serving.settings import ServeSettings

_REQUIRED_MODULES = ("starlette", "uvicorn", "httptools", "python_multipart", "prometheus_client")  # extra serve
_field = partial(field_option, ServeSettings)


@verb_with_subverbs("serve")
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@gather(
    ServeSettings,
    "settings",
    _field("host", "ADDRESS"),
    _field("port", "PORT", type=click.IntRange(0, 65535)),
    _field("public"),
    _field("keys", "FILE", type=PATH),
    _field(
        "host_names",
        "NAME",
        flag="--host-name",
        multiple=True,
        show_default="any name; on a loopback address only the machine's own",
    ),
    _field("cors_origins", "ORIGIN", flag="--cors-origin", multiple=True),
    _field("suggestions", "FILE", type=OUTPUT),
    _field("trust_forwarded_for"),
    _field("metrics_token", "TOKEN", envvar="MANYHEADS_METRICS_TOKEN", show_envvar=True),
    _field("char_limit", "N", type=COUNT),
    _field("batch_limit", "N", type=COUNT),
    _field("alternatives_limit", "N", type=NOT_NEGATIVE),
    _field("body_limit", "BYTES", type=COUNT),
    _field("files", flag="--files/--no-files"),
    _field("file_limit", "BYTES", type=COUNT),
    _field("queue", "N", type=COUNT),
    _field("timeout", "SECONDS", type=click.FloatRange(min=0, min_open=True)),
    _field("keep_alive", "SECONDS", type=COUNT),
    _field(
        "req_limit",
        "N",
        type=NOT_NEGATIVE,
        show_default="120; unlimited on a loopback address without --trust-forwarded-for",
    ),
    _field("max_batch_tokens", "N", type=COUNT),
    _field("max_wait_ms", "MS", type=click.FloatRange(min=0)),
    _field("beam", "N", type=COUNT, show_default="search.beam_size of the run"),
    _field("glossary", "FILE", type=PATH),
    _field("match_source", flag="--match-source/--no-match-source"),
    _field("engine", type=ENGINE),
    _field("precision", type=click.Choice(["fp32", "bf16", "int8"])),
    _field("device", "NAME", help=None),
)
def serve(runs: tuple[Path, ...], settings: ServeSettings) -> None:
    """Serve translators through LibreTranslate's REST interface, and classifiers and language models beside them.

    Two translators that meet in a language also serve their two outer languages by way of it: de-en and en-fr give
    de-fr. /languages and the answers name the language between them.

    The server listens on this machine only, unless --host names another address. Logs go to stderr and hold no
    text of any request. After SIGTERM or Ctrl-C the server finishes running requests, then stops.
    """
    for module in _REQUIRED_MODULES:
        require(module, extra="serve", purpose="The server")
    from manyheads.serving.server import serve as run

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
@option("--req-limit", type=click.IntRange(0), show_default="--req-limit of the server")
def add(file: Path, name: str, req_limit: int | None) -> None:
    """Create a key named NAME and print it; it cannot be shown again.

    A running server accepts the key within a second.
    """
    from manyheads.serving.keys import KeyFile

    refuse_closed(sys.stdout, "output", "> FILE")
    KeyFile(file).add(name, req_limit, show=click.echo)


@verb("serve keys list", keys)
@click.argument("file", type=PATH)
@option("--json", "as_json", is_flag=True)
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
