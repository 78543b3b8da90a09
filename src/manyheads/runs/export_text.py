"""Write a classifier, an encoder or a language model as a folder of transformers, compared before it is kept."""

from __future__ import annotations

from pathlib import Path

from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.errors import RunError
from manyheads.interop.huggingface import check_pretrained, empty_model, read_pretrained, write_pretrained
from manyheads.interop.huggingface.check import compare_back
from manyheads.interop.marian import has_transformers
from manyheads.interop.parity import Parity
from manyheads.runs.cards.transformers import exported_text_card
from manyheads.runs.scoring.scored import with_scores
from manyheads.runs.scoring.scored_text import text_scores
from manyheads.tasks.classification import Labels
from manyheads.text.huggingface import HuggingFaceTokenizer

__all__ = ["write_text_model"]


def write_text_model(draft: Path, run: RunDirectory) -> Parity:
    """Write the model of a run, and compare it: in transformers where that is installed, else read back.

    Args:
        draft: an empty folder.
        run: of any task but translation.

    Raises:
        RunError: the run cannot be read, or transformers has no such model; every reason is told.
        ParityError: what was written gives something else.
    """
    config = run.config()
    tokenizer = run.tokenizers(config).source
    labels = Labels.of_run(run).names if config.task == "classification" else ()
    model = run.fill(empty_model(config, tokenizer, len(labels)))
    write_pretrained(draft, config, tokenizer, model, labels)
    card, scores = exported_text_card(config, tokenizer.size, labels), text_scores(run.path)
    write_atomically(draft / "README.md", (with_scores(card, scores) if scores else card).encode())
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    if has_transformers():
        return check_pretrained(draft, tokenizer, config.task, model)
    back = read_pretrained(draft)
    if back.labels != labels:
        raise RunError(f"the labels were not written as they are: {', '.join(back.labels)}.")
    again = empty_model(config, tokenizer, len(labels))
    again.load_state_dict(back.tensors(config.task), strict=False)
    return compare_back(model, again.eval(), tokenizer, config.task)
