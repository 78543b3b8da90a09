"""The warning about a text that is unlike the sources that a translator learned from (`SourceModel`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from manyheads.errors import RunError
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.text.source_model import SOURCES, SourceModel

if TYPE_CHECKING:
    from manyheads.checkpoint import RunDirectory
    from manyheads.text.tokenizer import TokenizerPair


def read_source_model(run: RunDirectory, tokenizers: TokenizerPair) -> SourceModel | None:
    """Read the model of the training sources of a run; None if it has none: an old run, or one made elsewhere."""
    path = run.path / SOURCES
    if not path.is_file():
        return None
    try:
        return SourceModel.from_json(run.document(SOURCES), tokenizers.source.size)
    except ValueError as error:
        raise RunError(f"{path} is damaged: it holds no model of sources. Copy the run directory again.") from error


class UnlikeTraining(Stage):
    """The warning, of a translator with a model of its training sources."""

    warnings: ClassVar = {
        "unlike-training": "the text is unlike what the model was trained on, and its translation may be wrong"
    }

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warning."""
        sources = self.translator.sources
        unlike = sources is not None and sources.is_unlike(draft.line.parts)
        return translation.with_warnings({"unlike-training": unlike})
