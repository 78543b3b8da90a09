"""Model cards: the README.md of a run or an export, as Markdown with YAML front matter.

Their texts are in model_cards.toml. Licence, intended use and limits are left for the user to fill in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bitext.languages import base_language
from bitext.sources import read_sources
from manyheads import __version__
from manyheads.config.schema import Config
from manyheads.data.reading import READINGS
from manyheads.data.training_text import training_corpora
from manyheads.errors import DataError
from manyheads.interop.huggingface.settings import AUTO_CLASSES
from manyheads.text.reserved import language_symbol
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.progress import Progress
from manyheads.training.registry import task_of

_LIBRARIES = {
    "ctranslate2": "ctranslate2",
    "huggingface": "transformers",
    "argos": "argostranslate",
    "sentence-transformers": "sentence-transformers",
    "javascript": "manyheads",
}
_GREEDY = dict.fromkeys(("bleu", "chrf"), " (greedy search)")  # the search that measures a validation metric


def trained_card(config: Config, tokenizers: TokenizerPair, progress: Progress, labels: Sequence[str] = ()) -> str:
    """Return the card of a trained run; `labels` are the classes of a classifier."""
    task = task_of(config)
    best = "none" if progress.best is None else f"{abs(progress.best):.{task.loss_decimals}f}"
    facts = _facts_of(config, tokenizers, labels) | {
        "steps": progress.step,
        "metric": config.training.metric,
        "best": best,
        "unit": task.loss_unit or _GREEDY.get(config.training.metric, ""),
        "best_step": progress.best_step,
        "sources": "".join(f"\n  - {line}" for line in _source_lines(config)),
    }
    template = config.task if config.task in _card_texts() else _template_of(config)
    return _fill(template, facts, "trained", "manyheads", _usage_of_run(config))


def _template_of(config: Config) -> str:
    """Return the name of the text of a card that is not of the task's own."""
    return "translation" if config.spec.decodes else "transformers"


def _usage_of_run(config: Config) -> str:
    usages, own = _card_texts()["usage"], config.task
    text: str = usages[own if own in usages else "other"]["manyheads"]
    return _with_direction(text.replace("{command}", config.spec.command), config)


def _with_direction(usage: str, config: Config) -> str:
    """Return the description of the use of a translator, with the choice of a direction where it has several."""
    if not config.multilingual:
        return usage
    symbol = f'tokenizer.convert_tokens_to_ids("{language_symbol("TARGET")}")'
    chosen = {
        "translate DIRECTORY": "translate DIRECTORY --from SOURCE --to TARGET",
        "translate RUN": "translate RUN --from SOURCE --to TARGET",
        'translate(["..."])': 'translate(["..."], target="TARGET", source="SOURCE")',
        "{ beam: 5 }": '{ beam: 5, target: "TARGET", source: "SOURCE" }',
        "padding=True))": f"padding=True), forced_bos_token_id={symbol})",
    }
    for text, replacement in chosen.items():
        usage = usage.replace(text, replacement)
    if "translate_batch" in usage:
        usage += f"\n{_card_texts()['usage']['translation']['symbol'].strip()}"
    return usage


def _source_lines(config: Config) -> list[str]:
    """Return a line with licence and origin for each source that is noted beside the training text."""
    try:
        corpora = [corpus for corpus in training_corpora(config.data) if corpus.reads_files("train")]
        files = [path for corpus in corpora for path in READINGS[config.spec.reads].files(corpus, "train")]
        return [source.line() for source in read_sources(files)]
    except DataError as error:  # the text was moved meanwhile; the run is finished all the same
        return [f"Sources unknown: {error}"]


def imported_card(config: Config, tokenizers: TokenizerPair, where: str, labels: Sequence[str] = ()) -> str:
    """Return the card of a run imported from `where`."""
    facts = _facts_of(config, tokenizers, labels) | {"where": where}
    return _fill(_template_of(config), facts, "imported", "manyheads", _usage_of_run(config))


def tuned_line(**facts: object) -> str:
    """Return the line of a card about a tuning, with the facts that its template names."""
    text: str = _card_texts()["origin"]["tuned"]
    return text.format(**facts)


def exported_card(
    config: Config, tokenizers: TokenizerPair, to: str, labels: Sequence[str] = (), lost: Sequence[str] = ()
) -> str:
    """Return the card of an export in the format `to`; `lost` are the settings that it loses, in words."""
    facts, usages = _facts_of(config, tokenizers, labels), _card_texts()["usage"]
    facts["lost"] = "".join(f"\n- Not in this format: {setting}" for setting in lost)
    if config.spec.decodes:
        return _fill("translation", facts, "exported", _LIBRARIES[to], _usage_of_export(config, tokenizers, to))
    name = config.spec.command if to == "javascript" else AUTO_CLASSES[config.spec.architecture]
    usage = usages["other"][to].replace("{name}", name)
    return _fill("transformers", facts, "exported_text", _LIBRARIES[to], usage)


def _usage_of_export(config: Config, tokenizers: TokenizerPair, to: str) -> str:
    """Describe the use of an exported translator, with the names of its tokenizer files."""
    usages = _card_texts()["usage"]["translation"]
    files = {".model": ("tokenizer.source.model", "tokenizer.target.model")}
    if config.tokenizer.kind == "marian":
        files = {".json": ("source.spm", "target.spm")}
    source, target = files.get(tokenizers.source.suffix, ("", ""))
    pieces = usages["pieces"].format(source=source, target=target) if source else ""
    return _with_direction(str(usages[to]).replace("{pieces}", pieces).rstrip(), config)


@cache
def _card_texts() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("model_cards.toml").read_text(encoding="utf-8"))


def _facts_of(config: Config, tokenizers: TokenizerPair, labels: Sequence[str]) -> dict[str, object]:
    """Return the facts about a model, by their names in the templates of the cards."""
    data, model, task = config.data, config.model, task_of(config)
    size = f"{tokenizers.source.size:,}"
    if not tokenizers.joint and tokenizers.target.size != tokenizers.source.size:
        size += f" and {tokenizers.target.size:,}"
    texts = dict.fromkeys(part.train for part in training_corpora(data))
    corpora = ([text] if isinstance(text, str) else text for text in texts)
    directions = config.directions if config.spec.reads_pairs else [config.languages]
    first_labels = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    return {
        "languages": ", ".join(dict.fromkeys(base_language(code) for pair in directions for code in pair)),
        "source": config.languages[0],
        "target": config.languages[1],
        "from": directions[0][0],
        "to": directions[0][1],
        "language": data.language,
        "version": __version__,
        "layers": "+".join(str(count) for count in config.layers if count),
        "width": model.d_model,
        "positions": model.positions,
        "norm": model.norm,
        "pooling": model.pooling,
        "window": data.max_length,
        "kind": config.tokenizer.kind,
        "size": size,
        "labels": first_labels,
        "classes": f"; labels: {first_labels}" if labels else "",
        "title": f"{task.model_noun} for {task.name}",
        "pipeline": task.pipeline,
        "data": ("" if data.reads_files("train") else data.dataset)
        or "; ".join(" and ".join(_shown_path(data.root, name) for name in files) for files in corpora),
    }


def _shown_path(root: str, name: str) -> str:
    """Return the name of a text with the folder that it is in, without the other folders of this machine."""
    return "/".join(Path(root, name).parts[-2:])


def _fill(template: str, facts: dict[str, object], origin: str, library: str, usage: str) -> str:
    """Fill the facts into a template and into a description of the model's origin, both given by name.

    `library` is the program that reads the model; `usage` has SOURCE and TARGET for the languages of a translator.
    """
    texts = _card_texts()
    usage = usage.replace("SOURCE", str(facts["from"])).replace("TARGET", str(facts["to"]))
    text: str = texts[template]
    return text.format(**facts, origin=texts["origin"][origin].format(**facts), library=library, usage=usage)
