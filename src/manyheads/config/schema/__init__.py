"""Every setting, defined once: type, default, unit, range, section of the paper; and rules between the sections.

No other file holds a default. The tree is frozen, refuses unknown keys, and imports neither torch nor the
rest of the package. "Section 3.2" and the like refer to Vaswani et al. (2017), "Attention Is All You Need".
"""

from typing import Annotated, Literal

from manyheads.config.schema.base import Field, Limits, Section
from manyheads.config.schema.cleaning import CleanConfig
from manyheads.config.schema.sections import (
    DataConfig,
    EvaluationConfig,
    ModelConfig,
    PairConfig,
    SearchConfig,
    TokenizerConfig,
)
from manyheads.config.schema.tasks import TASKS, TaskSpec
from manyheads.config.schema.training import StageConfig, TrainingConfig

__all__ = [
    "FREE_TO_CHANGE",
    "TASKS",
    "CleanConfig",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "ModelConfig",
    "PairConfig",
    "SearchConfig",
    "StageConfig",
    "TaskSpec",
    "TokenizerConfig",
    "TrainingConfig",
]

_MOST_PARAMETERS = 1_000_000_000_000


class LanguageError(ValueError):
    """A language that the task needs is missing, or one that it does not know is given."""


FREE_TO_CHANGE = {"data.root", "training.log_every", "training.save_every"}  # settings, when a training is resumed


class Config(Section):
    """The whole configuration of one run."""

    task: Annotated[str, Limits(enum=TASKS)] = Field(
        "translation",
        description="task of the model: translation from source to target, classification of texts or pairs of "
        "texts, language-modeling (predict the next token), or masked-lm (predict masked tokens, which "
        "pre-trains an encoder)",
    )
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    clean: CleanConfig = CleanConfig()

    @property
    def spec(self) -> TaskSpec:
        """Properties of the task, without an import of its modules."""
        return TASKS[self.task]

    @property
    def languages(self) -> tuple[str, str]:
        """Languages of source and target; for tasks that read no pairs, twice the language of the text.

        Those of several directions are joined: "de+en".
        """
        if not self.spec.reads_pairs:
            return self.data.language, self.data.language
        sources, targets = zip(*self.directions, strict=True)
        return "+".join(dict.fromkeys(sources)), "+".join(dict.fromkeys(targets))

    @property
    def multilingual(self) -> bool:
        """Whether the model is of `data.pairs`: its vocabulary has a symbol for each target language."""
        return bool(self.data.pairs)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Source and target language of each direction that a translator is trained on."""
        return [(view.source, view.target) for view in self.data.directions()]

    def for_directions(self, split: Literal["train", "valid", "test"] = "train") -> "list[Config]":
        """Return the configuration of each direction, as if it were the only one; see `DataConfig.directions`."""
        return [self.model_copy(update={"data": view}) for view in self.data.directions(split)]

    def by_direction(self) -> "dict[str, Config]":
        """Return `for_directions` by name, such as "de-en"; the name of a single direction is ""."""
        if not self.multilingual:
            return {"": self}
        return {"-".join(view.languages): view for view in self.for_directions()}

    def for_direction(self, source: str, target: str) -> "Config":
        """Return the configuration of one direction, which may be one that was not trained."""
        views = {(view.source, view.target): view for view in self.data.directions()}
        data = views.get((source, target)) or self.data.direction(source, target)
        return self.model_copy(update={"data": data})

    @property
    def layers(self) -> tuple[int, int]:
        """Layers of encoder and decoder; 0 where the model has none."""
        has_encoder, has_decoder = self.spec.architecture != "decoder", "decoder" in self.spec.architecture
        return has_encoder * self.model.num_encoder_layers, has_decoder * self.model.num_decoder_layers

    @property
    def whole_files(self) -> bool:
        """Whether the whole file is one text."""
        return self.spec.reads_stream and self.data.documents == "file"

    @property
    def keep_space(self) -> bool:
        """Whether the tokenizer keeps white space, which is part of the output of a language model."""
        return self.spec.reads_stream

    def check_language_model(self) -> None:
        """Refuse settings that a language model cannot use."""
        data, tokenizer, model = self.data, self.tokenizer, self.model
        if not self.spec.reads_stream:
            return
        if tokenizer.kind == "words" or tokenizer.sampling:
            name = "sampling" if tokenizer.sampling else "kind"
            raise ValueError(
                f"tokenizer.{name} = {vars(tokenizer)[name]!r} is not for language-modeling: text becomes tokens "
                'once, and must come back as it was. Use kind = "bpe", "unigram", "characters" or "bytes", and no '
                "sampling."
            )
        if data.weights is not None:
            raise ValueError("data.weights are for pairs; a language model reads all text once.")
        if model.positions == "learned" and model.max_positions < data.max_length:
            raise ValueError(
                f"data.max_length = {data.max_length} tokens a block, but model.max_positions = "
                f"{model.max_positions}. Use as many."
            )

    def check_languages(self) -> None:
        """Require the languages of the task, and no others."""
        languages = {"source": self.data.source, "target": self.data.target, "language": self.data.language}
        needed = () if self.data.pairs else self.spec.languages
        if self.data.pairs and not self.spec.reads_pairs:
            raise ValueError(f'data.pairs are for task = "translation", not for "{self.task}".')
        for name, value in languages.items():
            if name in needed and not value:
                description = DataConfig.model_fields[name].description
                raise LanguageError(f"data.{name} is missing: {description}.")
            if name not in needed and value:
                if self.data.pairs:
                    raise LanguageError(
                        f'data.{name} = "{value}" is for one pair of languages, and data.pairs names several. '
                        "Give one or the other."
                    )
                settings = " and ".join(f"data.{setting}" for setting in needed)
                raise LanguageError(
                    f'data.{name} = "{value}" has no meaning for task = "{self.task}". Give {settings}.',
                )

    def check_task(self) -> None:
        """Refuse settings that have no meaning for the task."""
        metric, known = self.training.metric, self.spec.metrics
        if metric not in known:
            raise ValueError(
                f'training.metric = "{metric}" is not measured for task = "{self.task}". Use {" or ".join(known)}.'
            )
        for name in ("augment", "terms"):
            if not self.spec.reads_pairs and getattr(self.data, name):
                raise ValueError(f'data.{name} is for pairs of sentences, not for task = "{self.task}".')
        if self.data.terms and self.tokenizer.kind not in ("bpe", "unigram"):
            raise ValueError(
                f'data.terms needs reserved symbols, which tokenizer.kind = "{self.tokenizer.kind}" does not have. '
                'Use kind = "bpe" or "unigram", or data.terms = 0.'
            )
        if self.spec.reads_pairs and not isinstance(self.data.valid, str | tuple):
            raise ValueError(f"data.valid = {self.data.valid} is a share, and a translator needs pairs. Name them.")
        if self.model.init_from is None:
            for name in ("init_vocabulary", "init_decoder_layers"):
                if getattr(self.model, name) not in ("keep", None):
                    raise ValueError(
                        f"model.{name} is for a pre-trained model, and model.init_from names none. "
                        "Name it, or leave both out."
                    )
        if not self.spec.reads_pairs and self.training.r_drop:
            raise ValueError(f'training.r_drop is for pairs of sentences, not for task = "{self.task}".')

    def check_stages(self) -> None:
        """Refuse stages whose weights do not fit the corpora, and stages of a task that draws no pairs."""
        corpora = 1 + len(self.data.more)
        if self.training.stages and self.data.pairs:
            raise ValueError("training.stages are for one pair of languages. Leave them out beside data.pairs.")
        if self.training.stages and self.spec.reads_stream:
            raise ValueError("training.stages draw pairs from corpora; a language model reads all text once.")
        for number, stage in enumerate(self.training.stages, start=1):
            if len(stage.weights) != corpora or not any(stage.weights):
                raise ValueError(
                    f"training.stages: stage {number} has weights = {list(stage.weights)}, but there are {corpora} "
                    f"corpora: train and {len(self.data.more)} in data.more. Give one number for each, not all 0."
                )

    def check_size(self) -> None:
        """Refuse a model that no machine could hold."""
        model = self.model
        layer = 4 * model.d_model**2 + 2 * model.d_model * model.d_ff
        rows = self.tokenizer.vocab_size + (model.max_positions if model.positions == "learned" else 0)
        numbers = (model.num_encoder_layers + model.num_decoder_layers) * layer + rows * model.d_model
        if numbers > _MOST_PARAMETERS:
            raise ValueError(
                f"model.d_model = {model.d_model:,}, d_ff = {model.d_ff:,} and the layers make a model of about "
                f"{numbers:,} parameters; at most {_MOST_PARAMETERS:,} are possible. Use a smaller model."
            )

    def check_vocabulary(self) -> None:
        """Require one vocabulary of pieces for several directions, which holds the target languages as symbols."""
        if not self.data.pairs:
            return
        if self.tokenizer.kind not in ("bpe", "unigram"):
            raise ValueError(f'data.pairs need tokenizer.kind = "bpe" or "unigram", not "{self.tokenizer.kind}".')
        if not self.tokenizer.joint:
            raise ValueError("data.pairs share one vocabulary, but tokenizer.joint = false. Use true.")

    def check_tying(self) -> None:
        """Require a joint vocabulary if all embeddings are tied."""
        separate = not self.tokenizer.joint and self.tokenizer.kind != "bytes" and self.spec.reads_pairs
        if separate and self.model.tied_embeddings == "all":
            raise ValueError(
                'model.tied_embeddings = "all" needs one vocabulary, but tokenizer.joint = false. '
                'Use tied_embeddings = "decoder" or joint = true.'
            )
