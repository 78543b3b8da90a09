"""The weights of manyheads models and of transformers' encoders and GPT-2: names, and conversion both ways.

The models are the same except for the layout of the weights. Query, key and value are one matrix in manyheads and
three in transformers (one in GPT-2). GPT-2 stores its matrices transposed. The rows of the vocabulary are in
another order. RoBERTa counts positions from the id of its padding + 1 on, so that the first rows of its table are
unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.config.schema.tasks import Architecture
from manyheads.errors import RunError
from manyheads.interop.huggingface.settings import FAMILIES
from manyheads.tensors.weights import check_values
from manyheads.text.huggingface import Family, HuggingFaceTokenizer

# Beginnings of the names of heads, which lack the prefix of the model; BERT's pooler has it.
_HEADS = ("classifier.", "pre_classifier.", "cls.", "lm_head.", "vocab_")


class Form(Enum):
    """The conversion of a weight of transformers to manyheads."""

    PLAIN = "unchanged"
    TRANSPOSED = "transposed"
    VOCABULARY = "a row for each token"
    POSITIONS = "a row for each position"


@dataclass(frozen=True)
class Entry:
    """One weight of a manyheads model.

    Attributes:
        name: its name in manyheads.
        hf_names: its name in transformers, or the names of the weights that manyheads concatenates.
        form: the conversion.
    """

    name: str
    hf_names: tuple[str, ...]
    form: Form = Form.PLAIN


def _linear(name: str, *hf_names: str, form: Form = Form.PLAIN) -> Iterator[Entry]:
    """Yield weight and bias of a linear layer or a norm."""
    yield Entry(f"{name}.weight", tuple(f"{hf_name}.weight" for hf_name in hf_names), form)
    yield Entry(f"{name}.bias", tuple(f"{hf_name}.bias" for hf_name in hf_names))


def body(family: Family, config: ModelConfig) -> Iterator[Entry]:
    """Yield all weights up to the last hidden state; `hf_names` lack the prefix of the model."""
    if family == "gpt2":
        yield Entry("embedding.tokens.weight", ("wte.weight",), Form.VOCABULARY)
        yield Entry("embedding.positions.table.weight", ("wpe.weight",), Form.POSITIONS)
        yield from _layers(family, "decoder_layers", config.num_decoder_layers)
        yield from _linear("decoder_norm", "ln_f")
        if config.tied_embeddings == "none":
            yield Entry("output.weight", ("lm_head.weight",), Form.VOCABULARY)
        return
    yield Entry("embedding.tokens.weight", ("embeddings.word_embeddings.weight",), Form.VOCABULARY)
    yield Entry("embedding.positions.table.weight", ("embeddings.position_embeddings.weight",), Form.POSITIONS)
    if config.token_types:
        yield Entry("embedding.types.weight", ("embeddings.token_type_embeddings.weight",))
    yield from _linear("embedding.norm", "embeddings.LayerNorm")
    yield from _layers(family, "encoder_layers", config.num_encoder_layers)


def _layers(family: Family, our_name: str, count: int) -> Iterator[Entry]:
    names = FAMILIES[family]
    for number in range(count):
        for table, form in (("transposed", Form.TRANSPOSED), ("layers", Form.PLAIN)):
            for our_layer, their_layers in names.get(table, {}).items():
                full_names = [f"{names['layer']}.{number}.{name}" for name in their_layers]
                yield from _linear(f"{our_name}.{number}.{our_layer}", *full_names, form=form)


def head(family: Family, architecture: Architecture) -> Iterator[Entry]:
    """Yield the weights after the last hidden state; `hf_names` are as in the file of such a model.

    An encoder without labels may have only the pooler.
    """
    names = FAMILIES[family]
    if architecture == "classifier" and "pooler" in names:
        yield from _linear("pooler", names["pooler"])
        yield from _linear("output", names["output"])
    elif architecture == "masked-encoder" and "masked_lm_head" in names:
        transform, norm, bias = names["masked_lm_head"]
        yield from _linear("transform", transform)
        yield from _linear("transform_norm", norm)
        yield Entry("output.bias", (bias,), Form.VOCABULARY)


def their_names(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the names in transformers of all entries."""
    return (name for entry in entries for name in entry.hf_names)


def our_tensors(
    entries: Iterable[Entry],
    weights: Mapping[str, Tensor],
    tokenizer: HuggingFaceTokenizer,
    unused_positions: int,
    folder: Path,
) -> dict[str, Tensor]:
    """Convert weights of transformers to manyheads.

    Args:
        entries: the weights to convert.
        weights: the tensors by their names in transformers.
        tokenizer: the tokenizer of the folder.
        unused_positions: number of unused rows at the beginning of the table of positions.
        folder: the folder of the model, for messages.

    Raises:
        RunError: tensors do not fit together, or are not finite.
    """
    tensors = {}
    for entry in entries:
        try:
            tensor = torch.cat([weights[name] for name in entry.hf_names]).float()
            if entry.form is Form.TRANSPOSED and tensor.ndim == 2:
                tensor = tensor.T
            elif entry.form is Form.POSITIONS:
                tensor = tensor[unused_positions:]
            elif entry.form is Form.VOCABULARY:
                rows = [len(tensor) if number is None else number for number in tokenizer.original_ids]
                tensor = torch.cat([tensor, tensor.new_zeros(1, *tensor.shape[1:])])[rows]
        except (RuntimeError, IndexError) as error:
            raise RunError(f"{folder}: {entry.hf_names[0]} does not fit: {error}.") from error
        check_values({entry.hf_names[0]: tensor}, str(folder))
        tensors[entry.name] = tensor.contiguous()
    return tensors


@torch.no_grad()
def their_tensors(
    entries: Iterable[Entry], weights: Mapping[str, Tensor], tokenizer: HuggingFaceTokenizer
) -> dict[str, Tensor]:
    """Convert weights of manyheads to transformers; the names are those in a file."""
    prefix = FAMILIES[tokenizer.stored.family]["prefix"]
    tensors: dict[str, Tensor] = {}
    for entry in entries:
        parts = _their_tensor(entry, weights[entry.name].float(), tokenizer).chunk(len(entry.hf_names))
        for name, part in zip(entry.hf_names, parts, strict=True):
            tensors[name if name.startswith(_HEADS) else prefix + name] = part.clone()
    return tensors


def _their_tensor(entry: Entry, weight: Tensor, tokenizer: HuggingFaceTokenizer) -> Tensor:
    if entry.form is Form.TRANSPOSED and weight.ndim == 2:
        return weight.T
    if entry.form is Form.VOCABULARY:
        return weight[[tokenizer.ids_by_original[number] for number in range(tokenizer.stored.rows)]]
    if entry.form is Form.POSITIONS and tokenizer.stored.family == "roberta":
        padding = tokenizer.stored.specials[1]
        return torch.cat([weight.new_zeros(1 + (1 if padding is None else padding), weight.size(1)), weight])
    return weight
