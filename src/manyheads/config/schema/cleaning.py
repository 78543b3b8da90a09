"""The section of a configuration on cleaning: `manyheads data clean`."""

from typing import Annotated

from bitext.cleaning.options import CleanOptions, RuleName
from manyheads.config.schema.base import Field, Limits, Section
from manyheads.config.schema.sections import Probability, Text


class CleanConfig(Section):
    """Cleaning of parallel text by `manyheads data clean`."""

    off: tuple[RuleName, ...] = Field(
        CleanOptions.off,
        description="rules that are not applied: mojibake, escapes, access-keys, typography (which repair a text: "
        "Ã¤, &amp;, the sign of _Cancel, &File, (_C), soft hyphens and ligatures), encoding, copy, language, "
        "length, cut, repetition, numbers, placeholders, boilerplate, duplicate, lexical",
    )
    max_ratio: Annotated[float, Limits(gt=1, le=1_000_000)] = Field(
        CleanOptions.max_ratio,
        description="largest ratio of the length of a side to what the other side suggests, in characters and in "
        "words; the usual ratio of the two languages is learned from the text",
    )
    loss: Probability = Field(
        CleanOptions.loss,
        description="share of good pairs that the lexical score may remove, and as many the two models; the "
        "threshold of each score is estimated from it",
    )
    models: tuple[Text, Text] | None = Field(
        None,
        description="two runs, one that translates source to target and one that translates back; together they "
        "score pairs (dual cross-entropy)",
    )

    @property
    def options(self) -> CleanOptions:
        """The settings without the two models, which `bitext` does not know."""
        return CleanOptions(self.off, self.max_ratio, self.loss)
