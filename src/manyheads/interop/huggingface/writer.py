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

__all__ = ["refuse_other_variants", "write_pretrained"]

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
# Names of theirs that are heads, and stand in a file without the name of the model; BERT's pooler is none.
HEADS = ("classifier.", "pre_classifier.", "cls.", "lm_head.", "vocab_")
DISTILBERT_EPSILON = 1e-12  # of its layer norm, which has no setting for it


def refuse_other_variants(config: Config, tokenizer: Tokenizer) -> HuggingFaceTokenizer:
    """The tokenizer; raises `RunError` for what a folder of transformers cannot be, with every reason."""
    model, task = config.model, config.task
    brought = isinstance(tokenizer, HuggingFaceTokenizer)
    family: Family = "gpt2" if task == "language-modeling" else "bert"
    if isinstance(tokenizer, HuggingFaceTokenizer):
        family = tokenizer.stored.family
    decoder, classifier = family == "gpt2", task == "classification"
    norm, activations = ("pre" if decoder else "post"), ("gelu", "gelu-tanh", "relu", "swish")
    pooler = "relu" if family == "distilbert" else "tanh"
    reasons = [
        reason
        for wrong, reason in (
            (
                not brought,
                f'tokenizer.kind = "{config.tokenizer.kind}" (its vocabulary must have come with such a model)',
            ),
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
            (decoder and model.token_types > 0, f"model.token_types = {model.token_types}"),
            (family == "distilbert" and model.token_types > 0, f"model.token_types = {model.token_types}"),
            (
                family == "distilbert" and model.norm_epsilon != DISTILBERT_EPSILON,
                f"model.norm_epsilon = {model.norm_epsilon} (it has {DISTILBERT_EPSILON})",
            ),
            (
                task == "masked-lm" and (model.activation != "gelu" or model.tied_embeddings == "none"),
                "a head of another activation than gelu, or that is not tied to the embeddings",
            ),
            (classifier and model.pooling != "cls", f'model.pooling = "{model.pooling}" (it has "cls")'),
            (classifier and model.pooler != pooler, f'model.pooler = "{model.pooler}" (it has "{pooler}")'),
        )
        if wrong
    ]
    if reasons or not isinstance(tokenizer, HuggingFaceTokenizer):
        raise RunError(f"a model of the type {family} of transformers cannot be this one: {'; '.join(reasons)}.")
    return tokenizer


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
    stored = ours.stored
    family, shape = stored.family, config.model
    back = Back(model, ours, family)
    found = back.tensors([*body(family, shape), *head(family, config.task)])
    settings = model_settings(shape, family, stored.rows, stored.specials[1])
    if family in ("bert", "roberta") and not shape.token_types:
        found[f"{family}.embeddings.token_type_embeddings.weight"] = torch.zeros(1, shape.d_model)
    if family == "gpt2":
        settings |= {"bos_token_id": stored.specials[3], "eos_token_id": stored.specials[3]}
    else:
        settings |= {"bos_token_id": stored.specials[2], "eos_token_id": stored.specials[3]}
    if labels:
        settings["id2label"] = {str(number): label for number, label in enumerate(labels)}
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    write_tensors(folder / "model.safetensors", found)
    settings["architectures"] = [CLASSES[family, config.task]]
    write_atomically(folder / "config.json", as_json(settings))
    write_tokenizer(folder, ours, longest(shape, config))


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
