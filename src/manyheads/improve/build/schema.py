"""The settings of a plan and of each kind of step (`manyheads build PLAN.toml`)."""

from typing import Annotated, Any, ClassVar, Literal

from manyheads.config.schema.base import Field, Limits, Section
from manyheads.config.schema.sections import Positive

Names = str | tuple[str, ...]
Tag = Annotated[str, Limits(pattern=r"^<[a-z0-9_-]+>$", examples=["<bt>"])]
_CONFIG_SECTIONS = ("data", "tokenizer", "model", "training", "search", "evaluation")


def as_names(names: Names | None) -> tuple[str, ...]:
    """Return one name or several names as a tuple."""
    return () if names is None else (names,) if isinstance(names, str) else names


class Step(Section):
    """A step of a plan.

    Attributes:
        product: "text" for files text.LANGUAGE, "model" for a run directory, "files" for others.
        kind: its name in `KINDS`.
    """

    product: ClassVar[Literal["text", "model", "files"]]
    kind: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that the step reads: tables below [text], or steps that write text."""
        return as_names(vars(self).get("text"))

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that the step uses: steps that train, or run directories."""
        return as_names(vars(self).get("model"))


class TextStep(Step):
    """A step that writes text."""

    product = "text"


class ConvertStep(TextStep):
    """Convert files of any form to text; see `manyheads data convert`."""

    kind: Literal["convert"]
    files: Annotated[tuple[str, ...], Limits(min_length=1)] = Field(
        description="files to convert; two files of lines after each other"
    )
    columns: tuple[str, str] | None = Field(None, description="columns of a table to take: source, then target")
    licence: str | None = Field(None, description="licence of the text. Default: as the files state")
    origin: str | None = Field(None, description="origin of the text. Default: as the files state")


class CleanStep(TextStep):
    """Remove noisy pairs from a parallel text; see `manyheads data clean`."""

    kind: Literal["clean"]
    text: str = Field(description="parallel text to clean")
    clean: dict[str, Any] = Field({}, description="settings of [clean]")


class Mixed(Section):
    """A text of a mixture."""

    text: str = Field(description="name of the text")
    tag: Tag | None = Field(None, description="word put before each line of the source language, such as <bt>")
    lines: Positive | None = Field(None, description="use only the first lines of the text")


class MixStep(TextStep):
    """Join texts line by line, with a tag before the source lines of some."""

    kind: Literal["mix"]
    text: Annotated[tuple[Mixed, ...], Limits(min_length=1)] = Field(
        description="texts to join, as tables {text, tag, lines}"
    )

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the joined texts."""
        return tuple(mixed.text for mixed in self.text)


class TranslateStep(TextStep):
    """Translate a text: the product holds the lines and their translations (back- or forward translation)."""

    kind: Literal["translate"]
    model: Names = Field(description="model that translates, or several as an ensemble")
    text: str = Field(description="text to translate; its language is the source language of the model")
    beam: Positive | None = Field(None, description="beam size. Default: search.beam_size of the model")
    sampling: Annotated[float, Limits(gt=0, le=1_000)] | None = Field(
        None, description="temperature of random sampling in place of beam search (Edunov et al. 2018)"
    )
    seed: Annotated[int, Limits(ge=0, lt=2**63)] = Field(1, description="seed of the sampling")
    lines: Positive | None = Field(None, description="translate only the first lines of the text")


class DistilStep(TextStep):
    """Translate the source side of a parallel text by teachers, as text for a student (Kim and Rush 2016)."""

    kind: Literal["distil"]
    model: Names = Field(description="teacher, or several as an ensemble")
    text: str = Field(description="parallel text whose target side is replaced")
    method: Literal["sequence", "interpolation"] = Field(
        "sequence",
        description="sequence takes the best hypothesis of the teacher; interpolation the hypothesis of the beam "
        "with the highest sentence BLEU against the reference",
    )
    beam: Positive = Field(5, description="beam size")
    lines: Positive | None = Field(None, description="use only the first lines of the text")


class TrainStep(Step):
    """Train a model. The settings of the sections override the settings of `config`."""

    product = "model"

    kind: Literal["train"]
    config: str | None = Field(None, description="TOML file or recipe that the settings start from")
    text: Names | None = Field(
        None, description="training texts: data.train, then data.more. Default: the text that config names"
    )
    valid: str | None = Field(None, description="validation text; needed with text")
    test: str | None = Field(None, description="test text; held out of the training texts")
    data: dict[str, Any] = Field({}, description="settings of [data], such as source and target")
    tokenizer: dict[str, Any] = Field({}, description="settings of [tokenizer]")
    model: dict[str, Any] = Field({}, description="settings of [model]")
    training: dict[str, Any] = Field({}, description="settings of [training]")
    search: dict[str, Any] = Field({}, description="settings of [search]")
    evaluation: dict[str, Any] = Field({}, description="settings of [evaluation]")

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the training texts, then of the validation and the test text."""
        return (*as_names(self.text), *as_names(self.valid), *as_names(self.test))

    @property
    def models(self) -> tuple[str, ...]:
        """No names: `model` holds settings."""
        return ()

    @property
    def sections(self) -> dict[str, dict[str, Any]]:
        """The settings by section, without empty sections."""
        return {name: dict(vars(self)[name]) for name in _CONFIG_SECTIONS if vars(self)[name]}


class _FineTuneStep(TrainStep):
    kind: Literal["fine-tune"]  # type: ignore[assignment]
    start: str = Field(description="model to start from")

    @property
    def models(self) -> tuple[str, ...]:
        return (self.start,)


class ExportStep(Step):
    """Export a model for another program."""

    product = "files"

    kind: Literal["export"]
    model: str = Field(description="model to export")
    to: Literal["ctranslate2", "argos", "huggingface", "sentence-transformers", "html", "javascript"] = Field(
        "ctranslate2", description="format, as of `manyheads export`"
    )
    quantization: str | None = Field(None, description="number format of the matrices, such as int8")


class EvaluateStep(Step):
    """Score a model on a parallel text."""

    product = "files"

    kind: Literal["evaluate"]
    model: str = Field(description="model to score")
    text: str = Field(description="parallel text to score it on")
    beam: Positive | None = Field(None, description="beam size. Default: search.beam_size of the model")


KINDS: dict[str, type[Step]] = {
    "convert": ConvertStep,
    "clean": CleanStep,
    "mix": MixStep,
    "train": TrainStep,
    "translate": TranslateStep,
    "distil": DistilStep,
    "fine-tune": _FineTuneStep,
    "export": ExportStep,
    "evaluate": EvaluateStep,
}


class PlanFile(Section):
    """The tables of a plan; each step is validated later, by its kind."""

    source: Annotated[str, Limits(min_length=1)] = Field(description="language that is translated, such as ko")
    target: Annotated[str, Limits(min_length=1)] = Field(description="language that is written, such as en")
    root: str = Field(".", description="folder that the paths below [text] start from")
    text: dict[str, dict[str, str]] = Field({}, description="texts: a table each, with a file for each language")
    steps: Annotated[dict[str, Any], Limits(min_length=1)] = Field(description="steps: a table each, with its kind")
