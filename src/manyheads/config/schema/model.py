"""The Transformer."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from manyheads.config.schema.section import Positive, Probability, Section

__all__ = ["ModelConfig"]


class ModelConfig(Section):
    """The Transformer (section 3; the base model of Table 3 is d_model 512, d_ff 2048, 8 heads, 6+6 layers)."""

    d_model: Positive = Field(256, description="width of the residual stream, D")
    d_ff: Positive = Field(1024, description="inner width of the feed-forward layers, F (section 3.3)")
    num_heads: Positive = Field(4, description="attention heads, H (section 3.2.2)")
    num_encoder_layers: Positive = Field(3, description="N on the encoder's side (section 3.1)")
    num_decoder_layers: Positive = Field(3, description="N on the decoder's side")
    dropout: Probability = Field(0.1, description="on each sublayer's output before it is added (section 5.4)")
    feed_forward_dropout: Probability = Field(0.0, description="after the activation")
    embedding_dropout: Probability | None = Field(
        None, description="on token plus position signal (section 5.4); the same as dropout unless given"
    )
    attention_dropout: Probability = Field(0.0, description="on attention weights; above 0 is slow on a CPU")
    word_dropout: Probability = Field(
        0.0, description="on whole token embeddings: the model must guess some words from the others"
    )
    layer_dropout: Probability = Field(
        0.0, description="on whole sublayers, sentence by sentence (Huang et al. 2016); for deep models"
    )
    norm: Literal["pre", "post"] = Field(
        "pre", description="layer norm before each sublayer, or after it as in the paper"
    )
    norm_epsilon: float = Field(1e-5, gt=0, description="added to the variance in layer norm")
    positions: Literal["sinusoidal", "learned", "rotary"] = Field("sinusoidal", description="section 3.5")
    max_positions: Positive = Field(
        1024, description="rows of the learned position table; the longest input of a model"
    )
    activation: Literal["relu", "gelu", "gelu-tanh", "swish", "swiglu"] = Field(
        "relu", description="section 3.3: relu; gelu is BERT's, gelu-tanh GPT-2's, swish opus-mt's"
    )
    tied_embeddings: Literal["all", "decoder", "none"] = Field(
        "all",
        description="which matrices are one: source, target and output; target and output; none (section 3.4)",
    )
    scale_embeddings: bool = Field(True, description="multiply token embeddings by sqrt(d_model) (section 3.4)")
    bias: bool = Field(True, description="biases in the linear layers")
    token_types: Annotated[int, Field(ge=0)] = Field(
        0, description="kinds of text in a sequence, each with a vector of its own, as BERT's two sentences"
    )
    embedding_norm: bool = Field(False, description="layer norm on the sum of the embeddings, as in BERT")
    pooling: Literal["cls", "mean"] = Field(
        "mean", description="what a classifier sees of a text: its first token, or the mean of all"
    )
    pooler: Literal["tanh", "relu"] = Field("tanh", description="non-linearity of a classifier's head")
    init_from: str | None = Field(
        None,
        description="a model to go on from, with its tokenizers and shape: a run, or a folder or hub name of a "
        "MarianMT model, of a BERT, DistilBERT or RoBERTa for encoders, of a GPT-2 for language models",
    )
    init_vocabulary: Literal["keep", "extend", "replace"] = Field(
        "keep",
        description="with init_from: its vocabulary; that and the new symbols of the training text (words, "
        "characters); or a new one by [tokenizer], whose symbols keep their vectors where it had them",
    )

    @model_validator(mode="after")
    def check_widths(self) -> Self:
        """Refuse widths that the heads cannot share, and unscaled embeddings that positions would outweigh."""
        if self.d_model % self.num_heads:
            near = self.d_model - self.d_model % self.num_heads
            choices = f"{near} or {near + self.num_heads}" if near else str(self.num_heads)
            raise ValueError(
                f"model.d_model = {self.d_model} is not divisible by model.num_heads = {self.num_heads}. "
                f"Use d_model = {choices}."
            )
        if self.positions == "rotary" and (self.d_model // self.num_heads) % 2:
            raise ValueError(
                f'model.positions = "rotary" needs an even head width; d_model / num_heads = '
                f"{self.d_model // self.num_heads}. Use another num_heads."
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f'model.positions = "sinusoidal" needs an even d_model, not {self.d_model}.')
        if self.positions == "sinusoidal" and not self.scale_embeddings and self.tied_embeddings != "none":
            raise ValueError(
                "model.scale_embeddings = false with sinusoidal positions and tied embeddings drowns the tokens "
                'in the position signal. Use scale_embeddings = true, or tied_embeddings = "none".'
            )
        return self
