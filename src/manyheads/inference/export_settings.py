"""Compare an export with its run on lines that use the settings of the run, and name the settings that are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bitext.languages import upper
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.config.schema import Config, SearchConfig
from manyheads.data.training_text import available_pairs, with_normal_form
from manyheads.errors import ParityError
from manyheads.inference.translation.translator import Translator
from manyheads.search.options import SearchOptions

# Settings of [search] that the programs of a format do not take from an export, with the value that they use.
# Pages and modules apply all others, and refuse what they lack.
_OFF = {"copy_literals": False, "lower_capitals": False}
_DEFAULT_LENGTHS = {
    name: SearchConfig.model_fields[name].default for name in ("max_length_ratio", "max_length_offset")
}
_INSTEAD: dict[str, dict[str, Any]] = {
    "ctranslate2": _OFF,
    "argos": {**_OFF, "no_repeat_ngram": 0, "beam_size": 4, "length_penalty": 0.2, **_DEFAULT_LENGTHS},
    "huggingface": {**_OFF, **_DEFAULT_LENGTHS},
}
_UNSPLIT = ("ctranslate2", "huggingface")  # formats whose programs do not split long lines into sentences
_SENTENCES = 6
_MOST_DIFFERENT = 0.1  # share of lines that a tie between two tokens may change in float32


def _lost_settings(config: Config, to: str) -> dict[str, Any]:
    """Return the settings of [search] that a format loses, with the value that its programs use instead."""
    if not config.spec.decodes:
        return {}
    return {name: value for name, value in _INSTEAD.get(to, {}).items() if getattr(config.search, name) != value}


def described_losses(config: Config, to: str) -> list[str]:
    """Return the settings that a format loses, in words."""
    lost = [
        f"search.{name} = {_toml(getattr(config.search, name))}{'' if not value else f' ({_toml(value)} instead)'}"
        for name, value in _lost_settings(config, to).items()
    ]
    if config.spec.decodes and config.tokenizer.normal_form and to in _INSTEAD:
        lost.append("the normal form of sources (soft hyphens, ligatures, full-width letters)")
    if config.spec.decodes and to in _UNSPLIT:
        lost.append(f"the splitting of lines longer than data.max_length = {config.data.max_length} tokens")
    return lost


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


@dataclass(frozen=True)
class TextComparison:
    """Translations of lines by a run and by its export.

    Attributes:
        lines: number of lines.
        same: number of lines with the same translation.
        lost: settings that the format does not hold, in words.
        example: a line with its two translations, that of the run first; () if all are the same.
    """

    lines: int
    same: int
    lost: tuple[str, ...]
    example: tuple[str, ...]

    def line(self) -> str:
        """Return the comparison."""
        return (
            f"compared on {self.lines} lines in capitals, with placeholders or unknown characters, of several "
            f"sentences, too long or empty: {self.same} translations are the same"
        )

    def verdict(self) -> str:
        """Return which settings are lost, and what that changes; "" if nothing is."""
        if not self.lost:
            return ""
        text = f"this format does not hold {', '.join(self.lost)}"
        if self.example:
            source, own, other = map(_quote, self.example)
            count = f"{self.lines - self.same} of {self.lines}"
            text += f": {count} such lines come out otherwise, {source} as {other}, not {own}"
        return text


def _quote(text: str) -> str:
    """Return a text between quotation marks, cut."""
    return f'"{text if len(text) <= 50 else text[:49] + "…"}"'


def setting_lines(opened: LoadedModel) -> list[str]:
    """Return lines that exercise the settings of a run, made of its validation text if that is on this machine."""
    config = opened.config
    texts = [pair.source for pair in available_pairs(config, "valid", _SENTENCES) if pair.source.strip()]
    texts = texts or ["A B C.", "1 2 3."]
    first, *_, last = texts
    count = 2 + config.data.max_length // max(1, sum(map(len, opened.tokenizers.source.encode(texts))))
    return [
        *texts,
        *(upper(text, config.languages[0]) for text in texts),
        *(f"{text} {{name}}" for text in texts),
        f"<b>{first}</b>",
        f"  {first}\t%s ",
        f"{first} {last}",
        f"{first} 鱻 ☃",
        f"{last[:2]}\u00ad{last[2:]}",
        " ".join(texts * count),
        "https://example.org/a?b=1",
        "17:45",
        "",
        "  ",
    ]


def compare_texts(
    opened: LoadedModel, to: str, lines: Sequence[str], outputs: Sequence[str], *, exact: bool
) -> TextComparison:
    """Compare the greedy translations of lines by an export with those of its run.

    Args:
        opened: the run.
        to: format, whose programs apply the settings of the run but `_lost_settings`.
        lines: the lines.
        outputs: their translations by the export.
        exact: whether the export is in float32, so that only ties may differ.

    Raises:
        ParityError: a translation differs that rounding does not explain.
    """
    kept = _replace_settings(opened.config, dict.fromkeys(_lost_settings(opened.config, to), 0.0))
    translator = Translator(kept, opened.tokenizers, opened.model)
    translations = [result.translation for result in translator.translate(lines, beam_size=1)]
    found = _compare_texts(translations, lines, outputs, described_losses(opened.config, to))
    if exact and found.lines - found.same > _MOST_DIFFERENT * found.lines:
        source, own, other = found.example
        raise ParityError(
            f"the export translates {found.lines - found.same} of {found.lines} lines otherwise than the run, "
            f'and was not kept: "{source}" as "{other}", not "{own}". Please report this with the configuration of '
            "the run."
        )
    return found


def compare_without_lost_settings(opened: LoadedModel, to: str) -> TextComparison:
    """Compare a run with what is left of it in a format, both computed by manyheads."""
    lines, lost = setting_lines(opened), described_losses(opened.config, to)
    own = Translator(opened.config, opened.tokenizers, opened.model).translate(lines)
    config = _replace_settings(opened.config, _lost_settings(opened.config, to))
    options = SearchOptions(split="none" if to in _UNSPLIT else "auto")
    tokenizers = opened.tokenizers.with_normal_forms(with_normal_form(config, 0))
    others = Translator(config, tokenizers, opened.model).translate(lines, options=options)
    return _compare_texts(
        [result.translation for result in own], lines, [result.translation for result in others], lost
    )


def join_comparisons(parts: Sequence[TextComparison]) -> TextComparison:
    """Return the comparisons of all directions as one."""
    lines, same = sum(part.lines for part in parts), sum(part.same for part in parts)
    example = next((part.example for part in parts if part.example), ())
    return TextComparison(lines, same, parts[0].lost, example)


def _replace_settings(config: Config, values: dict[str, Any]) -> Config:
    return config.model_copy(update={"search": config.search.model_copy(update=values)})


def _compare_texts(
    own: Sequence[str], lines: Sequence[str], outputs: Sequence[str], lost: Sequence[str]
) -> TextComparison:
    """Compare translations; leading and trailing blanks do not count, which programs treat in their own way."""
    different = [row for row in zip(lines, own, outputs, strict=True) if row[1].strip() != row[2].strip()]
    return TextComparison(len(lines), len(lines) - len(different), tuple(lost), different[0] if different else ())
