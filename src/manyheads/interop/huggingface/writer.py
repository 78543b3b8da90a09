"""Write an encoder or a language model of ours as a folder that transformers opens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from manyheads.checkpoint import as_json, write_atomically, write_tensors
from manyheads.config.schema import Config, ModelConfig, Task
from manyheads.errors import RunError
from manyheads.interop.huggingface.names import Entry, Form, body, head
from manyheads.interop.huggingface.settings import model_settings
from manyheads.interop.huggingface.tokenizers import write_tokenizer
from manyheads.model.transformer import Transformer
from manyheads.text.huggingface import Family, HuggingFaceTokenizer
from manyheads.text.tokenizer import Tokenizer

__all__ = ["longest", "refuse_other_bodies", "refuse_other_variants", "write_encoder", "write_pretrained"]

PREFIXES: dict[Family, str] = {
    "bert": "bert",
    "distilbert": "distilbert",
    "roberta": "roberta",
    "gpt2": "transformer",
}
CLASSES: dict[tuple[Family, Task], str] = {
    ("bert", "classification"): "BertForSequenceClassification",
    ("bert", "masked-lm"): "BertForMaskedLM",
    ("distilbert", "classification"): "DistilBertForSequenceClassification",
    ("distilbert", "masked-lm"): "DistilBertForMaskedLM",
    ("roberta", "classification"): "RobertaForSequenceClassification",
    ("roberta", "masked-lm"): "RobertaForMaskedLM",
    ("gpt2", "language-modeling"): "GPT2LMHeadModel",
}
ENCODERS: dict[Family, str] = {"bert": "BertModel", "distilbert": "DistilBertModel", "roberta": "RobertaModel"}
# Names of theirs that are heads, and stand in a file without the name of the model; BERT's pooler is none.
HEADS = ("classifier.", "pre_classifier.", "cls.", "lm_head.", "vocab_")
DISTILBERT_EPSILON = 1e-12  # of its layer norm, which has no setting for it


def refuse_other_variants(config: Config, tokenizer: Tokenizer) -> HuggingFaceTokenizer:
    """The tokenizer; raises `RunError` for what a folder of transformers cannot be, with every reason."""
    family = family_of_tokenizer(config, tokenizer)
    return tokenizer_unless([*body_reasons(config, tokenizer), *head_reasons(config, family)], family, tokenizer)


def refuse_other_bodies(config: Config, tokenizer: Tokenizer) -> HuggingFaceTokenizer:
    """The same of what such a folder holds up to the last hidden state, whatever comes behind it."""
    return tokenizer_unless(body_reasons(config, tokenizer), family_of_tokenizer(config, tokenizer), tokenizer)


def tokenizer_unless(reasons: Sequence[str], family: Family, tokenizer: Tokenizer) -> HuggingFaceTokenizer:
    """The tokenizer; raises `RunError` with the reasons where there are any."""
    if reasons or not isinstance(tokenizer, HuggingFaceTokenizer):
        raise RunError(f"a model of the type {family} of transformers cannot be this one: {'; '.join(reasons)}.")
    return tokenizer


def family_of_tokenizer(config: Config, tokenizer: Tokenizer) -> Family:
    """What a vocabulary came with, or the usual type for such a task."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.stored.family
    return "gpt2" if config.task == "language-modeling" else "bert"


def body_reasons(config: Config, tokenizer: Tokenizer) -> list[str]:
    """Why transformers has no such layers, embeddings or vocabulary."""
    model, task, family = config.model, config.task, family_of_tokenizer(config, tokenizer)
    decoder, distilled = family == "gpt2", family == "distilbert"
    norm, activations = ("pre" if decoder else "post"), ("gelu", "gelu-tanh", "relu", "swish")
    brought = isinstance(tokenizer, HuggingFaceTokenizer)
    kind = config.tokenizer.kind
    checks = (
        (not brought, f'tokenizer.kind = "{kind}" (its vocabulary must have come with such a model)'),
        (decoder != (task == "language-modeling"), f'task = "{task}"'),
        (model.norm != norm, f'model.norm = "{model.norm}" (it has "{norm}")'),
        (model.positions != "learned", f'model.positions = "{model.positions}" (it has "learned")'),
        (
            model.activation not in activations,
            f'model.activation = "{model.activation}" (it has {", ".join(activations)})',
        ),
        (model.scale_embeddings, "model.scale_embeddings = true"),
        (not model.bias, "model.bias = false"),
        (model.embedding_norm == decoder, f"model.embedding_norm = {str(model.embedding_norm).lower()}"),
        ((decoder or distilled) and model.token_types > 0, f"model.token_types = {model.token_types}"),
        (
            distilled and model.norm_epsilon != DISTILBERT_EPSILON,
            f"model.norm_epsilon = {model.norm_epsilon} (it has {DISTILBERT_EPSILON})",
        ),
    )
    return [reason for wrong, reason in checks if wrong]


def head_reasons(config: Config, family: Family) -> list[str]:
    """Why transformers has no such head."""
    model, task = config.model, config.task
    pooler = "relu" if family == "distilbert" else "tanh"
    classifier = task == "classification"
    checks = (
        (
            task == "masked-lm" and (model.activation != "gelu" or model.tied_embeddings == "none"),
            "a head of another activation than gelu, or that is not tied to the embeddings",
        ),
        (
            classifier and model.pooling != "cls",
            f'model.pooling = "{model.pooling}" (it has "cls"; --to sentence-transformers holds both)',
        ),
        (classifier and model.pooler != pooler, f'model.pooler = "{model.pooler}" (it has "{pooler}")'),
    )
    return [reason for wrong, reason in checks if wrong]


def write_pretrained(
    folder: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: Sequence[str] = ()
) -> None:
    """Write config.json, model.safetensors, tokenizer.json and tokenizer_config.json.

    Args:
        folder: where to.
        config: of the run.
        tokenizer: of its text.
        model: its model.
        labels: of its classes, in order.

    Raises:
        RunError: no model of transformers can be this one; every reason is told.
    """
    ours = refuse_other_variants(config, tokenizer)
    family = ours.stored.family
    entries = [*body(family, config.model), *head(family, config.task)]
    tensors = Back(model, ours, family).tensors(entries)
    write_parts(folder, config, ours, tensors, CLASSES[family, config.task], labels)


def write_encoder(
    folder: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: Sequence[str] = ()
) -> None:
    """The same without a head: what AutoModel opens; raises as `write_pretrained`.

    A classifier's pooler stands where such a model has one. It has read the first token or the mean, as ours does.
    """
    ours = refuse_other_bodies(config, tokenizer)
    family = ours.stored.family
    prefix = f"{PREFIXES[family]}."
    tensors = Back(model, ours, family).tensors(body(family, config.model))
    found = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    pooler = dict(model.named_parameters())
    if family != "distilbert" and "pooler.weight" in pooler:
        found |= {f"pooler.dense.{kind}": pooler[f"pooler.{kind}"].detach().float() for kind in ("weight", "bias")}
    write_parts(folder, config, ours, found, ENCODERS[family], labels)


def write_parts(
    folder: Path,
    config: Config,
    tokenizer: HuggingFaceTokenizer,
    tensors: Mapping[str, Tensor],
    architecture: str,
    labels: Sequence[str],
) -> None:
    """Write the files of a folder, of weights under their names."""
    stored, shape, found = tokenizer.stored, config.model, dict(tensors)
    family = stored.family
    settings = model_settings(shape, family, stored.rows, stored.specials[1])
    if family in ("bert", "roberta") and not shape.token_types:
        prefix = "" if architecture in ENCODERS.values() else f"{family}."
        found[f"{prefix}embeddings.token_type_embeddings.weight"] = torch.zeros(1, shape.d_model)
    if family == "gpt2":
        settings |= {"bos_token_id": stored.specials[3], "eos_token_id": stored.specials[3]}
    else:
        settings |= {"bos_token_id": stored.specials[2], "eos_token_id": stored.specials[3]}
    if labels:
        settings["id2label"] = {str(number): label for number, label in enumerate(labels)}
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    write_tensors(folder / "model.safetensors", found)
    settings["architectures"] = [architecture]
    write_atomically(folder / "config.json", as_json(settings))
    write_tokenizer(folder, tokenizer, longest(shape, config))


def longest(shape: ModelConfig, config: Config) -> int:
    """Most tokens of a text with its marks."""
    if config.task == "language-modeling":
        return config.data.max_length
    return min(config.data.max_length + 2, shape.max_positions)


class Back:
    """Our weights as theirs."""

    def __init__(self, model: Transformer, tokenizer: HuggingFaceTokenizer, family: Family) -> None:
        self.own: Mapping[str, Tensor] = dict(model.named_parameters())
        self.tokenizer = tokenizer
        self.family = family

    @torch.no_grad()
    def tensors(self, entries: Iterable[Entry]) -> dict[str, Tensor]:
        """Of all entries, by their names in a file."""
        found: dict[str, Tensor] = {}
        for entry in entries:
            parts = self.changed(entry).chunk(len(entry.theirs))
            found |= {self.full(name): part.clone() for name, part in zip(entry.theirs, parts, strict=True)}
        return found

    def full(self, name: str) -> str:
        """A name as it stands in a file."""
        return name if name.startswith(HEADS) else f"{PREFIXES[self.family]}.{name}"

    def changed(self, entry: Entry) -> Tensor:
        """One of ours in their order."""
        ours = self.own[entry.ours].detach().float()
        if entry.form is Form.TRANSPOSED and ours.ndim == 2:
            return ours.T
        if entry.form is Form.VOCABULARY:
            return ours[[self.tokenizer.ours[number] for number in range(self.tokenizer.stored.rows)]]
        if entry.form is Form.POSITIONS and self.family == "roberta":
            padding = self.tokenizer.stored.specials[1]
            return torch.cat([ours.new_zeros(1 + (1 if padding is None else padding), ours.size(1)), ours])
        return ours
