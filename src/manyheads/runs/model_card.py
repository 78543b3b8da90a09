"""Model cards: the README.md of a run or an export. Their texts are in model_cards.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from manyheads import __version__
from manyheads.config.schema import Config, DataConfig, Task
from manyheads.interop.huggingface.check import AUTO_CLASSES
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.training.progress import Progress

__all__ = [
    "classifier_card",
    "export_card",
    "exported_text_card",
    "imported_card",
    "imported_text_card",
    "language_model_card",
    "masked_card",
    "sentence_transformer_card",
    "translator_card",
]

LIBRARIES = {
    "ctranslate2": "ctranslate2",
    "huggingface": "transformers",
    "onnx": "onnxruntime",
    "argos": "argostranslate",
}
PIPELINES: dict[Task, str] = {
    "classification": "text-classification",
    "masked-lm": "fill-mask",
    "language-modeling": "text-generation",
}


@cache
def card_texts() -> dict[str, Any]:
    """Read model_cards.toml."""
    return tomllib.loads(Path(__file__).with_name("model_cards.toml").read_text(encoding="utf-8"))


def training_data(data: DataConfig) -> str:
    """Describe where the training text came from."""
    return data.dataset or (data.train if isinstance(data.train, str) else " and ".join(data.train))


def best_value(progress: Progress, digits: int = 3) -> str:
    """Return the best validation score."""
    return "none" if progress.best is None else f"{abs(progress.best):.{digits}f}"


def first_labels(labels: Sequence[str]) -> str:
    """Return the first ten labels."""
    return ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")


# --- translators ---


def translator_card(config: Config, tokenizers: TokenizerPair, progress: Progress) -> str:
    """Return Markdown with YAML front matter; licence, use and limits are left to fill in."""
    origin = card_texts()["origin"]["trained"].format(
        data=training_data(config.data),
        steps=progress.step,
        metric=config.training.metric,
        best=best_value(progress),
        best_step=progress.best_step,
    )
    return card_of_translator(config, tokenizers, origin, "manyheads", card_texts()["usage"]["manyheads"])


def imported_card(config: Config, tokenizers: TokenizerPair, where: str) -> str:
    """Return the card of an imported model, as `translator_card`."""
    origin = card_texts()["origin"]["imported"].format(where=where)
    return card_of_translator(config, tokenizers, origin, "manyheads", card_texts()["usage"]["manyheads"])


def export_card(config: Config, tokenizers: TokenizerPair, to: str) -> str:
    """Return the card of an exported model, as `translator_card`."""
    usages = card_texts()["usage"]
    files = {".model": ("tokenizer.source.model", "tokenizer.target.model")}
    if config.tokenizer.kind == "marian":
        files = {".json": ("source.spm", "target.spm")}
    source, target = files.get(tokenizers.source.suffix, ("", ""))
    pieces = usages["pieces"].format(source=source, target=target) if source else ""
    graphs = usages["graphs"] if tokenizers.source.suffix == ".model" else ""  # a SentencePiece model with our ids
    graphs = graphs.replace("SOURCE_PIECES", source).replace("TARGET_PIECES", target)
    usage = usages[to].replace("{pieces}", pieces).replace("{graphs}", graphs).rstrip()
    return card_of_translator(config, tokenizers, card_texts()["origin"]["exported"], LIBRARIES[to], usage)


def card_of_translator(config: Config, tokenizers: TokenizerPair, origin: str, library: str, usage: str) -> str:
    """Return the card with a sentence on the origin of the model, and how to use it."""
    data, model = config.data, config.model
    sizes = f"{tokenizers.source.size:,}"
    if not tokenizers.joint and tokenizers.target.size != tokenizers.source.size:
        sizes += f" and {tokenizers.target.size:,}"
    text: str = card_texts()["translator"]
    return text.format(
        source=data.source,
        target=data.target,
        version=__version__,
        layers=f"{model.num_encoder_layers}+{model.num_decoder_layers}",
        width=model.d_model,
        positions=model.positions,
        norm=model.norm,
        kind=config.tokenizer.kind,
        sizes=sizes,
        origin=origin,
        library=library,
        usage=usage.replace("SOURCE", data.source).replace("TARGET", data.target),
    )


# --- trained classifiers, encoders and language models ---


def classifier_card(config: Config, size: int, labels: Sequence[str], progress: Progress) -> str:
    """Return the card of a classifier with a vocabulary of `size` tokens."""
    more = {"labels": first_labels(labels), "pooling": config.model.pooling, "longest": config.data.max_length}
    return trained_card("classifier", config, size, progress, more)


def masked_card(config: Config, size: int, progress: Progress) -> str:
    """Return the card of a masked language model with a vocabulary of `size` tokens."""
    return trained_card("masked", config, size, progress, {})


def language_model_card(config: Config, tokenizer: Tokenizer, progress: Progress) -> str:
    """Return the card of a language model."""
    more = {
        "layers": config.model.num_decoder_layers,
        "window": config.data.max_length,
        "best": best_value(progress, digits=4),
    }
    return trained_card("language_model", config, tokenizer.size, progress, more)


def trained_card(name: str, config: Config, size: int, progress: Progress, more: dict[str, object]) -> str:
    """Fill in the card of a trained model of one language; `more` has further facts, which take precedence."""
    model = config.model
    facts = {
        "language": config.data.language,
        "version": __version__,
        "layers": model.num_encoder_layers,
        "width": model.d_model,
        "positions": model.positions,
        "norm": model.norm,
        "kind": config.tokenizer.kind,
        "size": f"{size:,}",
        "data": training_data(config.data),
        "steps": progress.step,
        "metric": config.training.metric,
        "best": best_value(progress),
        "best_step": progress.best_step,
    }
    text: str = card_texts()[name]
    return text.format(**{**facts, **more})


# --- imported and exported classifiers, encoders and language models ---


def imported_text_card(config: Config, size: int, labels: Sequence[str], where: str) -> str:
    """Return the card of a run imported from transformers; licence, use and limits are left to fill in."""
    origin = card_texts()["origin"]["imported_text"].format(where=where)
    return transformers_card(config, size, labels, "manyheads", origin, card_texts()["text_usage"][config.task])


def exported_text_card(config: Config, size: int, labels: Sequence[str]) -> str:
    """Return the card of a run exported for transformers."""
    usage = card_texts()["text_usage"]["transformers"].format(name=AUTO_CLASSES[config.task])
    return transformers_card(config, size, labels, "transformers", exported_origin(config), usage)


def sentence_transformer_card(config: Config, size: int, labels: Sequence[str]) -> str:
    """Return the card of a run exported for sentence-transformers."""
    usage = card_texts()["text_usage"]["sentence-transformers"]
    return transformers_card(config, size, labels, "sentence-transformers", exported_origin(config), usage)


def exported_origin(config: Config) -> str:
    """Describe the origin of an export."""
    text: str = card_texts()["origin"]["exported_text"]
    return text.format(data=training_data(config.data))


def transformers_card(
    config: Config, size: int, labels: Sequence[str], library: str, origin: str, usage: str
) -> str:
    """Return Markdown with YAML front matter."""
    model, decoder = config.model, config.task == "language-modeling"
    text: str = card_texts()["transformers"]
    return text.format(
        language=config.data.language,
        library=library,
        pipeline=PIPELINES[config.task],
        title=f"{'Language model' if decoder else 'Encoder'} for {config.task}",
        origin=origin,
        width=model.d_model,
        layers=model.num_decoder_layers if decoder else model.num_encoder_layers,
        size=size,
        labels=f"; labels: {first_labels(labels)}" if labels else "",
        usage=usage,
    )
