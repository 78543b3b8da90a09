"""Export classifiers, encoders and language models; each export is compared before it is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.config.schema import Config
from manyheads.errors import RunError, UsageError
from manyheads.interop.huggingface import check_pretrained, empty_model, read_pretrained, write_pretrained
from manyheads.interop.huggingface.check import compare_back
from manyheads.interop.marian import has_transformers
from manyheads.interop.parity import Parity
from manyheads.interop.sentence_transformers import check_sentence_transformer, write_sentence_transformer
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.runs.test_set_scores import text_scores, with_scores
from manyheads.runs.text_model_card import exported_text_card, sentence_transformer_card
from manyheads.tasks.classification import Labels
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import Tokenizer
from manyheads.training.log import Listener

__all__ = ["TEXT_FORMATS", "write_text_model"]


def write_text_model(draft: Path, run: RunDirectory, to: str, listener: Listener) -> Parity:
    """Write the model of a run and compare it: in the other program if that is installed, else read back.

    Args:
        draft: empty folder.
        run: run of any task but translation.
        to: one of `TEXT_FORMATS`.
        listener: receives messages.

    Raises:
        RunError: the run cannot be read, its head was never trained, or the other program has no such model; the
            message lists all reasons.
        ParityError: the export gives other results than the run.
    """
    config = run.config()
    tokenizer = run.tokenizers(config).source
    labels = trained_labels(run) if config.task == "classification" else ()
    model = run.fill(empty_model(config, tokenizer, len(labels)))
    write, card = TEXT_FORMATS[to]
    parity = write(draft, config, tokenizer, model, labels)
    text, scores = card(config, tokenizer.size, labels), text_scores(run.path, listener)
    write_atomically(draft / "README.md", (with_scores(text, scores) if scores else text).encode())
    return parity


def trained_labels(run: RunDirectory) -> tuple[str, ...]:
    """Return the classes of a classifier; raises `RunError` if its head was never trained."""
    labels = Labels.of_run(run)
    if not labels.trained:
        raise RunError(
            f"the head of {run.path} was never trained: its labels mean nothing. Fine-tune it first: "
            f"manyheads train CONFIG --set model.init_from={run.path}"
        )
    return labels.names


def as_huggingface(
    draft: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: tuple[str, ...]
) -> Parity:
    """Write and compare a folder of transformers."""
    write_pretrained(draft, config, tokenizer, model, labels)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    if has_transformers():
        return check_pretrained(draft, tokenizer, config.task, model)
    back = read_pretrained(draft)
    if back.labels != labels:
        raise RunError(f"the labels were not written as they are: {', '.join(back.labels)}.")
    again = empty_model(config, tokenizer, len(labels))
    again.load_state_dict(back.tensors(config.task), strict=False)
    return compare_back(model, again.eval(), tokenizer, config.task)


def as_sentence_transformer(
    draft: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: tuple[str, ...]
) -> Parity:
    """Write and compare a folder of sentence-transformers."""
    if not isinstance(model, TextClassifier):
        raise UsageError(
            f'--to sentence-transformers is for classifiers, and this run is of task = "{config.task}".'
        )
    write_sentence_transformer(draft, config, tokenizer, model, labels)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return check_sentence_transformer(draft, config, tokenizer, model)


Write = Callable[[Path, Config, Tokenizer, Transformer, tuple[str, ...]], Parity]
Card = Callable[[Config, int, Sequence[str]], str]
TEXT_FORMATS: dict[str, tuple[Write, Card]] = {
    "huggingface": (as_huggingface, exported_text_card),
    "sentence-transformers": (as_sentence_transformer, sentence_transformer_card),
}
