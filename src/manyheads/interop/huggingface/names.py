"""Our weights and those of transformers' encoders and of GPT-2, name by name.

They are the same models but for this. Query, key and value stand in one matrix here, in three there (in GPT-2 in
one). GPT-2 holds its matrices the other way round. The rows of the vocabulary have other numbers. RoBERTa counts
positions from the number of its padding + 1 on, so that the first rows of its table are of no use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from manyheads.config.schema import ModelConfig, Task
from manyheads.text.huggingface import Family

__all__ = ["Entry", "Form", "body", "head"]


class Form(Enum):
    """How a weight of theirs becomes one of ours."""

    PLAIN = "as it is"
    TRANSPOSED = "the other way round"
    VOCABULARY = "a row for each token"
    POSITIONS = "a row for each position"


@dataclass(frozen=True)
class Entry:
    """One of our weights.

    Attributes:
        ours: its name.
        theirs: the name of theirs, or of those that stand one above the other in ours.
        form: what else is different.
    """

    ours: str
    theirs: tuple[str, ...]
    form: Form = Form.PLAIN


def linear(ours: str, *theirs: str, form: Form = Form.PLAIN) -> Iterator[Entry]:
    """Matrix and bias of a linear layer, or gain and bias of a norm."""
    yield Entry(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), form)
    yield Entry(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs))


def body(family: Family, config: ModelConfig) -> Iterator[Entry]:
    """All weights up to the last hidden state; their names without the model's own name in front."""
    if family == "gpt2":
        yield from decoder(config)
        return
    yield Entry("embedding.tokens.weight", ("embeddings.word_embeddings.weight",), Form.VOCABULARY)
    yield Entry("embedding.positions.table.weight", ("embeddings.position_embeddings.weight",), Form.POSITIONS)
    if config.token_types:
        yield Entry("embedding.types.weight", ("embeddings.token_type_embeddings.weight",))
    yield from linear("embedding.norm", "embeddings.LayerNorm")
    layer = distilbert_layer if family == "distilbert" else bert_layer
    for number in range(config.num_encoder_layers):
        yield from layer(number)


def bert_layer(number: int) -> Iterator[Entry]:
    """A layer of BERT and of RoBERTa."""
    ours, theirs = f"encoder_layers.{number}", f"encoder.layer.{number}"
    parts = [f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")]
    yield from linear(f"{ours}.self_attention.project_in", *parts)
    yield from linear(f"{ours}.self_attention.project_out", f"{theirs}.attention.output.dense")
    yield from linear(f"{ours}.around_attention.norm", f"{theirs}.attention.output.LayerNorm")
    yield from linear(f"{ours}.feed_forward.expand", f"{theirs}.intermediate.dense")
    yield from linear(f"{ours}.feed_forward.contract", f"{theirs}.output.dense")
    yield from linear(f"{ours}.around_feed_forward.norm", f"{theirs}.output.LayerNorm")


def distilbert_layer(number: int) -> Iterator[Entry]:
    """A layer of DistilBERT."""
    ours, theirs = f"encoder_layers.{number}", f"transformer.layer.{number}"
    yield from linear(f"{ours}.self_attention.project_in", *(f"{theirs}.attention.{part}_lin" for part in "qkv"))
    yield from linear(f"{ours}.self_attention.project_out", f"{theirs}.attention.out_lin")
    yield from linear(f"{ours}.around_attention.norm", f"{theirs}.sa_layer_norm")
    yield from linear(f"{ours}.feed_forward.expand", f"{theirs}.ffn.lin1")
    yield from linear(f"{ours}.feed_forward.contract", f"{theirs}.ffn.lin2")
    yield from linear(f"{ours}.around_feed_forward.norm", f"{theirs}.output_layer_norm")


def decoder(config: ModelConfig) -> Iterator[Entry]:
    """GPT-2."""
    yield Entry("embedding.tokens.weight", ("wte.weight",), Form.VOCABULARY)
    yield Entry("embedding.positions.table.weight", ("wpe.weight",), Form.POSITIONS)
    for number in range(config.num_decoder_layers):
        ours, theirs = f"decoder_layers.{number}", f"h.{number}"
        for one, other in (
            ("self_attention.project_in", "attn.c_attn"),
            ("self_attention.project_out", "attn.c_proj"),
            ("feed_forward.expand", "mlp.c_fc"),
            ("feed_forward.contract", "mlp.c_proj"),
        ):
            yield from linear(f"{ours}.{one}", f"{theirs}.{other}", form=Form.TRANSPOSED)
        yield from linear(f"{ours}.around_attention.norm", f"{theirs}.ln_1")
        yield from linear(f"{ours}.around_feed_forward.norm", f"{theirs}.ln_2")
    yield from linear("decoder_norm", "ln_f")
    if config.tied_embeddings == "none":
        yield Entry("output.weight", ("lm_head.weight",), Form.VOCABULARY)


def head(family: Family, task: Task) -> Iterator[Entry]:
    """The weights behind the last hidden state; their names as they stand in the file of such a model.

    Of an encoder without labels, only the pooler may be there.
    """
    if family == "gpt2":
        return
    if task == "classification":
        yield from linear("pooler", POOLERS[family])
        yield from linear("output", "classifier.out_proj" if family == "roberta" else "classifier")
    elif task == "masked-lm":
        transform, norm, bias = GUESSERS[family]
        yield from linear("transform", transform)
        yield from linear("transform_norm", norm)
        yield Entry("output.bias", (bias,), Form.VOCABULARY)


POOLERS: dict[Family, str] = {
    "bert": "pooler.dense",
    "roberta": "classifier.dense",
    "distilbert": "pre_classifier",
}
# the linear layer, the norm and the bias of what guesses hidden tokens
GUESSERS: dict[Family, tuple[str, str, str]] = {
    "bert": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
    "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
}
