"""Settings of earlier versions: what the program does in their place, and when an old run can still be opened."""

from __future__ import annotations

from typing import Any, NamedTuple

_SECTIONS = ("measured",)  # of earlier versions


class _Removed(NamedTuple):
    """A setting that is gone.

    Attributes:
        instead: what to do without it, in words.
        constant: the value that the program works with now.
        needed: whether a model trained with another value would give other outputs.
    """

    instead: str
    constant: Any = None
    needed: bool = False


REMOVED = {
    "tokenizer.keep_space": _Removed("language models keep white space, other models do not"),
    "model.feed_forward_dropout": _Removed("model.dropout is on each sublayer's output"),
    "model.layer_dropout": _Removed("use model.dropout"),
    "model.init_encoder_layers": _Removed("all encoder layers are taken"),
    "training.plateau_factor": _Removed("the factor is 0.9; set training.plateau_patience"),
    "training.frozen_layers": _Removed("use training.layer_decay or training.lora_rank"),
    "training.unfreeze_every": _Removed("use training.layer_decay or training.lora_rank"),
    "training.lora_alpha": _Removed("it is 16; set training.learning_rate"),
    "training.masked": _Removed("15% of the tokens are masked"),
    "training.divergence": _Removed("a warning is printed"),
    "search.coverage_penalty": _Removed("outputs are ranked by search.length_penalty alone", 0, needed=True),
    "search.attention_layer": _Removed("give --attention-layer to `manyheads translate`"),
    "clean.boilerplate": _Removed("a side may occur 20 times"),
    "clean.language": _Removed("the threshold is 4 nats"),
    "clean.learn_from": _Removed("100,000 pairs are learned from"),
    "evaluation.stride": _Removed("the window slides by half of data.max_length"),
}


def drop_removed(values: dict[str, Any]) -> list[str]:
    """Remove settings of earlier versions from those of a run; return one mistake for each that the model needs."""
    for section in _SECTIONS:
        values.pop(section, None)
    mistakes = []
    for name, removed in REMOVED.items():
        section, _, key = name.partition(".")
        settings = values.get(section)
        if not isinstance(settings, dict) or key not in settings:
            continue
        value = settings.pop(key)
        if removed.needed and value != removed.constant:
            mistakes.append(
                f"{name} = {value} was removed, and outputs depend on it: {removed.instead}. To open the run, "
                "remove this line from its config.json."
            )
    return mistakes
