"""Base class of the sections, and ranges that settings share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["FilePair", "Language", "Positive", "Probability", "Section", "Share"]

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]
Language = Annotated[str, Field(pattern=r"^([a-zA-Z]{2,8}([-_][a-zA-Z0-9]{1,8})*)?$")]
FilePair = tuple[str, str]


class Section(BaseModel):
    """A frozen section that refuses unknown keys and implicit conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
