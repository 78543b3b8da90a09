"""How a model is asked, and what it says is scored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from manyheads.config.schema.section import Positive, Section

__all__ = ["EvaluationConfig", "SearchConfig"]


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
