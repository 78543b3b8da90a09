"""Write the page of the demo model that pages of the documentation embed.

    python -m tools.demo_page PAGE.html

The demo is trained once, in about a minute, and cached in build/demo until its recipe or its text changes. The page
is written each time.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from manyheads.config.load import config_to_json, load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.data.builtin import BUILTIN
from manyheads.runs.train import train
from manyheads.web.html_export import write_page

NAME = "demo-de-en"
CACHE = Path(__file__).parent.parent / "build" / "demo"


def cached_run(config: Config, cache: Path) -> Path:
    """Return the folder that caches the run of a recipe: one for each recipe and text."""
    assert config.data.dataset is not None
    text = BUILTIN[config.data.dataset.removeprefix("builtin:")]
    key = hashlib.sha256(f"{config_to_json(config)}{text}".encode()).hexdigest()
    return cache / key[:8] / NAME


def main(arguments: list[str] | None = None, *, cache: Path = CACHE, overrides: tuple[str, ...] = ()) -> int:
    """Train the demo unless it is cached, and write its page; `overrides` are settings for a smaller demo."""
    parser = argparse.ArgumentParser(description="Write the page of the demo model.")
    parser.add_argument("page", type=Path, help="HTML file to write")
    page = parser.parse_args(arguments).page
    config = load_config(resolve_recipe(NAME), ["training.device=cpu", *overrides])
    run = cached_run(config, cache)
    if not (run / "README.md").is_file():  # the model card, which is written last
        print(f"Training the demo for the live pages of the book, once, in about a minute: {run}", flush=True)
        train(config, run)
    write_page(run, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
