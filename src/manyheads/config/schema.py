"""Every setting, once: its type, default, unit, range and place in the paper.

No other file holds a default. The tree is frozen, refuses unknown keys, and imports neither torch nor the
rest of the package. "Section 3.2" and the like point into Vaswani et al. (2017), "Attention Is All You Need".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

__all__ = [
    "METRICS",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "ModelConfig",
    "SearchConfig",
    "Task",
    "TokenizerConfig",
    "TrainingConfig",
    "languages_needed",
]

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]
Language = Annotated[str, Field(pattern=r"^([a-zA-Z]{2,8}([-_][a-zA-Z0-9]{1,8})*)?$")]
FilePair = tuple[str, str]

Task = Literal["translation", "classification", "language-modeling", "masked-lm"]
METRICS: dict[Task, tuple[str, ...]] = {  # what `training.metric` may be
    "translation": ("loss", "bleu", "chrf"),
    "classification": ("loss", "accuracy", "macro_f1"),
    "language-modeling": ("loss",),
    "masked-lm": ("loss",),
}


def languages_needed(task: Task) -> tuple[str, ...]:
    """The settings of `[data]` that name the languages of a task."""
    return ("source", "target") if task == "translation" else ("language",)


class Section(BaseModel):
    """A frozen part of the tree that refuses unknown keys and silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class DataConfig(Section):
    """Where the text comes from, and which of it is used."""

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
    """How text becomes token ids (section 5.1: byte-pair encoding)."""

    kind: Literal["bpe", "unigram", "words", "characters", "bytes", "marian"] = Field(
        "bpe",
        description="pieces by SentencePiece, whole words by spaCy (extra words), characters, or UTF-8 bytes; "
        "marian comes with an imported MarianMT model",
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
        description="a model to go on from: for translation a run or a MarianMT folder with its tokenizers and "
        "shape; for encoders a run, and the head of the task stays new",
    )

    @model_validator(mode="after")
    def check_widths(self) -> Self:
        """Refuse widths that cannot be split among the heads, and drowned tokens."""
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


class TrainingConfig(Section):
    """The optimiser, its schedule, and when to stop and save (section 5)."""

    steps: Positive = Field(8_000, description="optimiser updates")
    epochs: Positive | None = Field(None, description="passes over the corpus; given, it replaces steps")
    max_minutes: float | None = Field(
        None, gt=0, description="training time; the number of steps is fixed from the speed measured at the start"
    )
    batch_tokens: Positive = Field(4_096, description="target tokens an update, end marks counted, padding not")
    batch_sentences: Positive | None = Field(None, description="pairs an update; given, it replaces batch_tokens")
    accumulation: Positive = Field(
        1, description="parts an update is computed in, one after the other, to save memory"
    )
    optimizer: Literal["adam", "adamw", "muon"] = Field(
        "adam", description="section 5.3: adam; muon (Jordan et al. 2024) needs fewer updates, each a little longer"
    )
    muon_factor: float = Field(
        3.0, gt=0, description="muon: learning rate of the matrices inside the layers over that of the rest"
    )
    learning_rate: float = Field(2e-3, gt=0, description="peak; for noam the factor in front of the formula")
    betas: tuple[Probability, Probability] = Field((0.9, 0.98), description="section 5.3")
    epsilon: float = Field(1e-9, gt=0, description="section 5.3")
    weight_decay: float = Field(
        0.0, ge=0, description="added to gradients (adam), or taken off matrices (adamw, muon)"
    )
    schedule: Literal["inverse-sqrt", "noam", "cosine", "linear", "plateau", "constant"] = Field(
        "inverse-sqrt",
        description="noam is the formula of section 5.3; the others rise to learning_rate, then fall",
    )
    warmup_steps: Annotated[int, Field(ge=0)] = Field(1_000, description="updates of rising rate")
    plateau_factor: float = Field(0.9, gt=0, lt=1, description="what the rate is multiplied by (plateau)")
    plateau_patience: Positive = Field(10, description="validations without improvement before that (plateau)")
    label_smoothing: Probability = Field(0.1, description="section 5.4")
    r_drop: float = Field(
        0.0,
        ge=0,
        description="weight of the divergence between two passes with other dropout (R-Drop: Liang et al. 2021, "
        "whose alpha it is); an update takes about twice as long",
    )
    ema: Probability = Field(
        0.0, description="decay of an exponential moving average of the weights, which translates then; 0 is off"
    )
    clip_norm: float | None = Field(1.0, gt=0, description="largest gradient norm")
    layer_decay: float = Field(
        1.0,
        gt=0,
        le=1,
        description="each layer learns at so much of the rate of the one above it, embeddings the slowest; 0.8 is "
        "usual where a pre-trained model is fine-tuned",
    )
    frozen_layers: Annotated[int, Field(ge=0)] | None = Field(
        None, description="the embeddings, and that many layers from the first, stay as they are; faster, too"
    )
    unfreeze_every: Positive | None = Field(
        None,
        description="updates after which one more layer learns, from the last to the first (Howard and Ruder 2018)",
    )
    lora_rank: Annotated[int, Field(ge=0)] = Field(
        0,
        description="each matrix of the layers moves by a product of two of that rank, and all but the task's head "
        "stays else as it is (LoRA: Hu et al. 2022); 0 trains all. Rates of 1e-4 to 1e-3 suit it",
    )
    lora_alpha: float = Field(16.0, gt=0, description="that product counts lora_alpha / lora_rank times")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="auto: bf16 where the processor is faster with it"
    )
    device: str = Field("auto", description='"cpu", "cuda", "cuda:1"; auto takes a GPU when there is one')
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of initial weights, order, dropout, subword sampling")
    save_every: Positive = Field(500, description="updates between checkpoints; each also validates")
    log_every: Positive = Field(10, description="updates between lines of metrics.jsonl")
    keep_checkpoints: Positive = Field(2, description="how many of the last checkpoints stay, beside the best")
    average_checkpoints: Positive = Field(
        1, description="weights of that many last checkpoints averaged at the end"
    )
    metric: Literal["loss", "bleu", "chrf", "accuracy", "macro_f1"] = Field(
        "loss",
        description="what the best checkpoint is chosen by: loss; of translations also bleu, chrf; of classes also "
        "accuracy, macro_f1",
    )
    masked: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.15, description="masked-lm: share of the tokens that are hidden (Devlin et al. 2019, section 3.1)"
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="classification: balanced weighs each class by one over its share of the examples"
    )
    divergence: Literal["warn", "rollback"] = Field(
        "warn",
        description="when the loss is far above its running mean: warn, or go back to the last checkpoint at half "
        "the rate",
    )
    compile: bool = Field(
        False,
        description="compile the layers (torch.compile), and pad text to a few lengths for it; meant for GPUs. The "
        "first updates take long, and a CPU needs a C++ compiler",
    )
    shard: bool = Field(
        False,
        description="spread weights, gradients and moments over the processes (FSDP), for models larger than a GPU",
    )
    workers: Annotated[int, Field(ge=0)] = Field(
        1, description="threads that make batches ahead; 0 makes each when it is due. The result is the same"
    )
    patience: Positive | None = Field(None, description="validations without improvement before training stops")
    tensorboard: bool = Field(False, description="also write TensorBoard's files (extra tensorboard)")
    valid_sentences: Annotated[int, Field(ge=0)] = Field(
        500, description="validation pairs decoded for BLEU and chrF at each save; 0 is none"
    )

    @model_validator(mode="after")
    def check_whole_matrices(self) -> Self:
        """Muon and LoRA need whole matrices, and each of them takes them for itself."""
        if self.shard and self.optimizer == "muon":
            raise ValueError(
                'training.shard = true spreads matrices that training.optimizer = "muon" needs whole. '
                'Use optimizer = "adamw".'
            )
        if self.lora_rank and (self.shard or self.optimizer == "muon"):
            other = "shard = true" if self.shard else 'optimizer = "muon"'
            raise ValueError(
                f"training.lora_rank = {self.lora_rank} steps along two thin factors of each matrix, which "
                f'training.{other} cannot. Use optimizer = "adamw" and shard = false.'
            )
        return self


class SearchConfig(Section):
    """How translations are searched for (section 6.1)."""

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
    batch_tokens: Positive = Field(4_096, description="source tokens x beam decoded together")


class EvaluationConfig(Section):
    """How outputs are scored."""

    protocol: Literal["sacrebleu", "spacy-lowercase", "moses-lowercase"] = Field(
        "sacrebleu",
        description="detokenised, cased text (default); or lower-cased tokens, as some papers score",
    )
    stride: Positive | None = Field(
        None,
        description="language-modeling: tokens that the window moves on by, at most data.max_length; half of that "
        "unless given. The fewer, the more context each token has",
    )


class Config(Section):
    """The whole configuration of one run."""

    task: Task = Field("translation", description="what is learnt")
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @property
    def languages(self) -> tuple[str, str]:
        """Of the source and of the target; where nothing is translated, both are that of the text."""
        if self.task == "translation":
            return self.data.source, self.data.target
        return self.data.language, self.data.language

    @property
    def whole_files(self) -> bool:
        """Whether all lines of a file are one text."""
        return self.task == "language-modeling" and self.data.documents == "file"

    @model_validator(mode="before")
    @classmethod
    def keep_space_of_language_models(cls, values: Any) -> Any:
        """White space is part of what a language model writes."""
        if not isinstance(values, dict) or values.get("task") != "language-modeling":
            return values
        given = values.get("tokenizer", {})
        if isinstance(given, TokenizerConfig) and "keep_space" not in given.model_fields_set:
            return {**values, "tokenizer": given.model_copy(update={"keep_space": True})}
        return {**values, "tokenizer": {"keep_space": True, **given}} if isinstance(given, dict) else values

    @model_validator(mode="after")
    def check_language_model(self) -> Self:
        """Refuse what has no meaning for a language model, and what has one for it alone."""
        data, tokenizer, model = self.data, self.tokenizer, self.model
        if self.task != "language-modeling":
            if tokenizer.keep_space:
                raise ValueError(f'tokenizer.keep_space = true is for "language-modeling", not for "{self.task}".')
            return self
        if not tokenizer.keep_space:
            raise ValueError('tokenizer.keep_space = false, but a "language-modeling" run must write white space.')
        if tokenizer.kind == "words" or tokenizer.sampling:
            name = "sampling" if tokenizer.sampling else "kind"
            raise ValueError(
                f"tokenizer.{name} = {vars(tokenizer)[name]!r} is not for language-modeling: text becomes tokens "
                'once, and must come back as it was. Use kind = "bpe", "unigram", "characters" or "bytes", and no '
                "sampling."
            )
        if data.weights is not None or data.temperature != 1:
            raise ValueError(
                "data.weights and data.temperature are for pairs; a language model reads all text once."
            )
        if model.positions == "learned" and model.max_positions < data.max_length:
            raise ValueError(
                f"data.max_length = {data.max_length} tokens a block, but model.max_positions = "
                f"{model.max_positions}. Use as many."
            )
        if self.evaluation.stride is not None and self.evaluation.stride > data.max_length:
            raise ValueError(
                f"evaluation.stride = {self.evaluation.stride} leaves out text: it is more than data.max_length = "
                f"{data.max_length}, the window."
            )
        return self

    @model_validator(mode="after")
    def check_languages(self) -> Self:
        """Each task names its own languages, and no others."""
        given = {"source": self.data.source, "target": self.data.target, "language": self.data.language}
        needed = languages_needed(self.task)
        for name, value in given.items():
            if name in needed and not value:
                what = DataConfig.model_fields[name].description
                raise PydanticCustomError("languages", f"data.{name} is missing: {what}.")
            if name not in needed and value:
                right = " and ".join(f"data.{other}" for other in needed)
                raise PydanticCustomError(
                    "languages", f'data.{name} = "{value}" has no meaning for task = "{self.task}". Give {right}.'
                )
        return self

    @model_validator(mode="after")
    def check_task(self) -> Self:
        """Refuse what has no meaning for the task."""
        metric, known = self.training.metric, METRICS[self.task]
        if metric not in known:
            raise ValueError(
                f'training.metric = "{metric}" is not measured for task = "{self.task}". Use {" or ".join(known)}.'
            )
        if self.task == "translation" and not isinstance(self.data.valid, str | tuple):
            raise ValueError(f"data.valid = {self.data.valid} is a share, and a translator needs pairs. Name them.")
        if self.model.init_from is not None and self.task == "language-modeling":
            raise ValueError(f'model.init_from is not known for task = "{self.task}". Leave it out.')
        if self.task != "translation" and self.training.r_drop:
            raise ValueError(f'training.r_drop is known for task = "translation" alone, not for "{self.task}".')
        return self

    @model_validator(mode="after")
    def check_tying(self) -> Self:
        """One matrix for all needs one vocabulary for both."""
        separate = not self.tokenizer.joint and self.tokenizer.kind != "bytes" and self.task == "translation"
        if separate and self.model.tied_embeddings == "all":
            raise ValueError(
                'model.tied_embeddings = "all" needs one vocabulary, but tokenizer.joint = false. '
                'Use tied_embeddings = "decoder" or joint = true.'
            )
        return self
