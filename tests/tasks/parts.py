"""What holds for every task."""

from __future__ import annotations

from manyheads.config.schema import Config
from manyheads.tensors.models import build_model
from manyheads.text.tokenizer import TokenizerPair
from manyheads.text.training import train_tokenizer
from manyheads.training.registry import task_of

CLASSES = ("bad", "fair", "good")
WORDS = {"kind": "words", "sampling": 0.0}


def assert_names_its_weights(config: Config) -> None:
    """Assert that a task names the weights with a row for each token, and those of its head, as its model does.

    A training that starts from another model copies by these names.
    """
    task = task_of(config)
    tokenizers = TokenizerPair(
        train_tokenizer(config.tokenizer, ["a b c"], config.languages[0]),
        train_tokenizer(config.tokenizer, ["d e f g h"], config.languages[1]),
        joint=False,
    )
    if config.task != "translation":
        tokenizers = TokenizerPair(tokenizers.source, tokenizers.source, joint=True)
    weights = dict(build_model(config, tokenizers, len(CLASSES)).named_parameters())
    for name, side in task.token_rows.items():
        size = (tokenizers.source if side == "source" else tokenizers.target).size
        assert name not in weights or len(weights[name]) == size, name
    assert weights.keys() & task.token_rows.keys()
    for beginning in task.head:
        assert any(name.startswith(beginning) for name in weights), beginning
