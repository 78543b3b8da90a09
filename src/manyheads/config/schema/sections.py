"""The sections of a configuration on text, tokenizer, model, search and evaluation."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "DataConfig",
    "EvaluationConfig",
    "ModelConfig",
    "Positive",
    "Probability",
    "SearchConfig",
    "Section",
    "TokenizerConfig",
]

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]
Language = Annotated[str, Field(pattern=r"^([a-zA-Z]{2,8}([-_][a-zA-Z0-9]{1,8})*)?$")]
FilePair = tuple[str, str]


class Section(BaseModel):
    """A frozen section that refuses unknown keys and implicit conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class DataConfig(Section):
    """Text files, and which of their lines are used."""

    root: str = Field(".", description="folder that relative paths start from")
    dataset: str | None = Field(
        None,
        description='a corpus by name instead of files: "builtin:de-en", "builtin:ko-en", '
        'or "hf:NAME/CONFIG" (extra hf)',
    )
    source: Language = Field("", description="language translated from, such as de")
    target: Language = Field("", description="language translated into, such as en")
    language: Language = Field("", description="language of the text, such as en, where nothing is translated")
    documents: Literal["file", "line"] = Field(
        "file",
        description="language-modeling: what a text is: a whole file, line ends and all, or each line of it",
    )
    train: str | FilePair = Field(
        "train",
        description="a split name (files {split}.{language}[.gz|.xz|.zst]), one .tsv or .jsonl file, "
        "or [source file, target file]; of other tasks one file, also by its name without .tsv, .jsonl or .txt",
    )
    valid: str | FilePair | Share = Field(
        "valid",
        description="as train; scored while training. Where nothing is translated also a share such as 0.1: that "
        "much of the end of train, which is not trained on then",
    )
    test: str | FilePair | None = Field(None, description="as train; what `evaluate` scores")
    more: tuple[str | FilePair, ...] = Field(
        (), description="further training text mixed in, each like train: other domains, back-translations"
    )
    weights: tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        None,
        description="how often the pairs of train and of each of more come in an epoch, once unless given; of 0.5, "
        "every other pair comes, in each epoch others",
    )
    temperature: float = Field(
        1.0, ge=1, description="above 1, smaller corpora come more often: a share of size ** (1 / temperature)"
    )
    limit: float | None = Field(
        None, gt=0, description="use only the first pairs of train: a count, or below 1 a share"
    )
    max_length: Positive = Field(
        128,
        description="tokens a side; longer training pairs are dropped, counted, and texts to classify cut; of a "
        "language model a block, which is all that it looks at",
    )
    max_ratio: float = Field(
        9.0, ge=1, description="longer side over shorter side in characters; pairs beyond are dropped, counted"
    )
    drop_duplicates: bool = Field(True, description="drop training pairs that occurred before")
    drop_overlap: bool = Field(True, description="drop training pairs that also stand in valid or test")
    invalid_utf8: Literal["error", "replace"] = Field(
        "error", description="what to do with bytes that are no UTF-8"
    )

    @model_validator(mode="after")
    def check_weights(self) -> Self:
        """Refuse weights that do not fit the corpora."""
        if self.weights is None:
            return self
        corpora = 1 + len(self.more)
        if len(self.weights) != corpora:
            raise ValueError(
                f"data.weights holds {len(self.weights)} numbers, but there are {corpora} corpora: train and "
                f"{len(self.more)} in data.more. Give one number for each."
            )
        if not any(self.weights) or self.temperature != 1:
            raise ValueError("data.weights must not all be 0, and cannot be given together with data.temperature.")
        return self


class TokenizerConfig(Section):
    """Tokenizer of source and target (section 5.1: byte-pair encoding)."""

    kind: Literal["bpe", "unigram", "words", "characters", "bytes", "marian", "huggingface"] = Field(
        "bpe",
        description="pieces by SentencePiece, whole words by spaCy (extra words), characters, or UTF-8 bytes; "
        "marian and huggingface come with a pre-trained model",
    )
    vocab_size: Annotated[int, Field(ge=8)] = Field(
        8_000, description="pieces, special symbols included (bpe, unigram)"
    )
    joint: bool = Field(True, description="one vocabulary for both languages (section 5.1)")
    sampling: Probability = Field(
        0.0,
        description="training only, 0 is off. bpe: probability that a merge is passed over in a step (Provilkov et "
        "al. 2020). unigram: the exponent alpha of Kudo (2018); the smaller, the further from the best split",
    )
    byte_fallback: bool = Field(True, description="spell unknown characters as UTF-8 bytes (bpe, unigram)")
    character_coverage: Annotated[float, Field(gt=0.5, le=1.0)] = Field(
        1.0, description="share of characters that get a piece of their own (bpe, unigram)"
    )
    min_count: Positive = Field(1, description="rarer symbols become <unk> (words, characters)")
    lowercase: bool = Field(False, description="lower-case the text; cannot be undone when decoding")
    keep_space: bool = Field(
        False,
        description="blanks, tabs and line ends are tokens as they stand, not each run of them one blank; unless "
        "given, true for language-modeling, which must write them, and for nothing else",
    )


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
        description="pre-trained model to start from, with its tokenizers and shape: a run, or folder or hub name "
        "of a MarianMT model, of a BERT, DistilBERT or RoBERTa for encoders, of a GPT-2 for language models",
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


class SearchConfig(Section):
    """Search for translations (section 6.1)."""

    beam_size: Positive = Field(5, description="1 is greedy")
    length_penalty: float = Field(1.0, ge=0, description="score = log-probability / length ** length_penalty")
    max_length_ratio: float = Field(2.0, gt=0, description="longest output: ratio x source tokens + offset")
    max_length_offset: Annotated[int, Field(ge=0)] = Field(20, description="in tokens")
    coverage_penalty: float = Field(
        0.0, ge=0, description="weight of source tokens never looked at in a score (Wu et al. 2016, beta)"
    )
    no_repeat_ngram: Annotated[int, Field(ge=0)] = Field(
        0, description="no n-gram of so many tokens comes twice in an output; 0 is off"
    )
    attention_layer: int = Field(
        -1, description="decoder layer that word alignments are read from, 0 the lowest, -1 the highest"
    )
    batch_tokens: Positive = Field(4_096, description="source tokens x beam decoded at the same time")


class EvaluationConfig(Section):
    """Scoring of outputs."""

    protocol: Literal["sacrebleu", "spacy-lowercase", "moses-lowercase"] = Field(
        "sacrebleu",
        description="detokenised, cased text (default); or lower-cased tokens, as some papers score",
    )
    stride: Positive | None = Field(
        None,
        description="language-modeling: tokens that the window moves on by, at most data.max_length; half of that "
        "unless given. The fewer, the more context each token has",
    )
