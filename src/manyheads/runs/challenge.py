"""`manyheads doctor RUN --challenge`: translate made-up inputs of the kinds that people type, and count what fails.

The inputs are drawn with a fixed seed from the text of the run, or from its vocabulary where the text is not on
this machine. Their number is fixed, so that the time depends on the model alone.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from random import Random
from typing import Any

from bitext.defects import letters_of
from bitext.languages import base_language, upper
from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.augment_copies import COPIES, make_tag
from manyheads.data.augment_text import END_MARK
from manyheads.data.training_text import available_pairs
from manyheads.errors import UsageError
from manyheads.evaluation.advice import settings_to_try
from manyheads.evaluation.challenge import Case, Figure, Group, judge, lines_of
from manyheads.inference.translation.directions import require_one_direction
from manyheads.inference.translation.translator import Translator
from manyheads.reports import NO_LISTENER, Listener
from manyheads.text.tokenizer import SPECIALS, Tokenizer
from manyheads.training.registry import task_of

_WORDS, _LINES = 100, 50  # single words; lines of each other group
_INSIDE_LINES = 200  # sentences with texts inside
_SENTENCES = 5  # sentences of each kind in a language
_INSIDE = 4  # lines with a text inside of a sentence, for each line of another group
_MOST_TRAIN, _MOST_VALID = 200_000, 2_000  # maximum number of pairs to read
_LEAST_COUNT = 2  # occurrences of a word in the training text
_LEAST_WORDS, _MOST_WORDS = 4, 25  # words of a sentence
_WORD = re.compile(r"[^\W\d_]{2,}")
_EMPTY = (" ", ".", "-", "...", "\u200b", "\u00a0", "!?", "\u3000", "* * *", "()")
_OTHER_SCRIPTS = (
    "Καλημέρα", "Ευχαριστώ πολύ", "Спасибо", "Где вокзал?", "안녕하세요", "오늘은 날씨가 좋습니다.", "こんにちは",
    "駅はどこですか。", "你好", "今天天气很好。", "مرحبا", "أين المحطة؟", "שלום", "नमस्ते", "สวัสดี", "გამარჯობა",
    "Բարեւ", "வணக்கம்", "Xin chào", "Dzień dobry", "Hyvää päivää", "Tere hommikust", "Jó napot", "Merhaba",
)  # fmt: skip
_NO_TEXT = "the text of the run is not on this machine (--set data.root=DIR says where it is)"


@dataclass(frozen=True)
class Challenge:
    """The figures of a run.

    Attributes:
        subject: the run directory.
        results: each group of inputs with its figures.
        seconds: time that the translations took.
        config: configuration of the run.
    """

    subject: str
    results: Sequence[tuple[Group, Sequence[Figure]]]
    seconds: float
    config: Config

    @property
    def exit_code(self) -> int:
        """Return 0 if every figure is within its limit, else 1."""
        return int(any(not figure.good for _, figures in self.results for figure in figures))

    def lines(self) -> Iterator[str]:
        """Yield the report for people."""
        total = sum(len(group.cases) for group, _ in self.results)
        yield f"{self.subject}: {total:,} made-up inputs, translated in {self.seconds:.1f} s"
        for group, figures in self.results:
            yield from ("", *lines_of(group, figures))
        bad = [group.name for group, figures in self.results if any(not figure.good for figure in figures)]
        found = f"not good with {', '.join(bad)}. {self.cure(bad)}" if bad else "all figures are good"
        yield from ("", f"verdict: {found}")

    def cure(self, names: Sequence[str]) -> str:
        """Return the cure for groups of inputs, beyond the present settings."""
        settings = dict.fromkeys(setting for name in names for setting in settings_to_try(name, self.config))
        at_once = ", ".join(setting for setting in settings if setting.startswith("search."))
        trained = ", ".join(setting for setting in settings if not setting.startswith("search."))
        cures = [
            *([f"Without a new training: {at_once}"] if at_once else []),
            *([f"Train with {trained}"] if trained else []),
        ]
        return ". ".join(cures or ["Train longer or on more text: the settings for such inputs are on already"])

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "subject": self.subject,
            "ok": not self.exit_code,
            "seconds": round(self.seconds, 2),
            "groups": [
                {
                    "name": group.name,
                    "lines": len(group.cases),
                    "note": group.note,
                    "figures": [figure.to_json() for figure in figures],
                }
                for group, figures in self.results
            ],
        }


def challenge_run(
    path: Path,
    *,
    overrides: Sequence[str] = (),
    device: str = "cpu",
    listener: Listener = NO_LISTENER,
    words: int = _WORDS,
    lines: int = _LINES,
) -> Challenge:
    """Translate made-up inputs with a run; no file is changed.

    Args:
        path: the run directory.
        overrides: settings such as `data.root=DIR` or `search.no_repeat_ngram=3`, instead of those of the run.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        listener: receives messages.
        words: number of single words.
        lines: number of lines of each other group.

    Raises:
        RunError: the directory holds no run, or a damaged one.
        UsageError: the run is no translator.
    """
    run = RunDirectory.existing(path)
    config = with_overrides(run.config(), overrides)
    if not config.spec.decodes:
        raise UsageError(f'--challenge is for translators, and {path} has task = "{config.task}".')
    require_one_direction(config, "--challenge")
    loaded = task_of(config).load(path, device)
    translator = Translator(config, loaded.tokenizers, loaded.engine)
    listener.message("reading the text")
    groups = challenge_groups(config, translator.tokenizers.source, words=words, lines=lines)
    start = time.perf_counter()
    judged = judge_translator(translator, groups, listener)
    return Challenge(str(path), judged, time.perf_counter() - start, config)


def judge_translator(
    translator: Translator, groups: Sequence[Group], listener: Listener
) -> list[tuple[Group, Sequence[Figure]]]:
    """Translate made-up inputs, and return each group with its figures."""
    sources = [case.source for group in groups for case in group.cases]
    usual = list(dict.fromkeys(case.usual for group in groups for case in group.cases if case.usual))
    listener.message(f"translating {len(sources) + len(usual):,} made-up lines")
    with listener.phase("translating"):
        results = translator.translate([*sources, *usual])
    usual_outputs = {result.source: result.translation for result in results[len(sources) :]}
    judged: list[tuple[Group, Sequence[Figure]]] = []
    rest = iter(results)
    for group in groups:
        found = list(islice(rest, len(group.cases)))
        texts, parts = [result.translation for result in found], [result.sentences for result in found]
        judged.append((group, judge(group, texts, usual_outputs, parts) if found else []))
    return judged


def challenge_groups(config: Config, tokenizer: Tokenizer, *, words: int, lines: int) -> list[Group]:
    """Make up the inputs of a run: the same inputs in every call with the same text."""
    rng = Random("challenge")
    train = available_pairs(config, "train", _MOST_TRAIN)
    valid = {pair.source: pair for pair in available_pairs(config, "valid", _MOST_VALID) if _is_sentence(pair)}
    sentences = list(valid.values())  # without the copies that the text of a tuning has of its corrections
    rng.shuffle(sentences)
    single, note = (_text_words(train), "words of the training text that are no line of it") if train else (
        _vocabulary_words(tokenizer), "pieces of the vocabulary",
    )  # fmt: skip
    chosen = rng.sample(single, min(words, len(single)))
    carriers = [pair.source for pair in sentences] or chosen
    return [
        Group("single words", [Case(word) for word in chosen], note if chosen else "the vocabulary has no words"),
        *_sentence_groups(sentences, lines, config.data.source),
        *(Group(name, _kept_cases(name, carriers, lines, rng)) for name in (*COPIES, "tags")),
        Group("texts inside of sentences", _inside_cases(config.data.source, carriers)[: lines * _INSIDE]),
        Group("empty-looking lines", [Case(text) for text in _EMPTY]),
        Group("other scripts", [Case(text) for text in _OTHER_SCRIPTS]),
    ]


def _is_sentence(pair: Pair) -> bool:
    """Return whether a pair has a usual length and an end mark."""
    fits = _LEAST_WORDS <= len(pair.source.split()) <= _MOST_WORDS
    return fits and bool(END_MARK.search(pair.source)) and has_text(pair.target)


def _text_words(pairs: Sequence[Pair]) -> list[str]:
    """Return the words of the sources that occur at least twice inside lines, and are no line by themselves."""
    counts: Counter[str] = Counter()
    for pair in pairs:
        # without the first word, which is capitalised anyway
        counts.update(word[0] for word in list(_WORD.finditer(pair.source))[1:])
    lines = {letters_of(pair.source) for pair in pairs}
    return sorted(word for word, count in counts.items() if count >= _LEAST_COUNT and letters_of(word) not in lines)


def _vocabulary_words(tokenizer: Tokenizer) -> list[str]:
    """Return the pieces of a vocabulary that begin a word and have at least four letters."""
    pieces = tokenizer.pieces(range(len(SPECIALS), tokenizer.size))
    texts = (piece.removeprefix("▁") for piece in pieces if piece.startswith("▁"))
    return sorted({text for text in texts if len(text) > 3 and text.isalpha()})


def _sentence_groups(sentences: Sequence[Pair], lines: int, language: str) -> list[Group]:
    """Make the groups of changed sentences, which need translations to compare with."""
    names = ("capitals", "no end mark", "two sentences")
    if len(sentences) < 2:
        return [Group(name, [], _NO_TEXT) for name in names]
    some = sentences[: 2 * lines]
    capitals = [
        Case(upper(pair.source, language), reference=pair.target, usual=pair.source)
        for pair in some
        if upper(pair.source, language) != pair.source
    ]
    unmarked = [
        Case(END_MARK.sub("", pair.source), reference=END_MARK.sub("", pair.target), usual=pair.source)
        for pair in some
    ]
    both = [
        Case(f"{first.source} {second.source}", reference=f"{first.target} {second.target}")
        for first, second in zip(some[::2], some[1::2], strict=False)
    ]
    return [
        Group(names[0], capitals, "" if capitals else "the script of the source has no capitals"),
        Group(names[1], unmarked),
        Group(names[2], both),
    ]


def _kept_cases(name: str, carriers: Sequence[str], lines: int, rng: Random) -> list[Case]:
    """Make lines with a text that must be copied: alone, before, after, or before the end mark of a sentence."""
    cases = []
    for index in range(lines):
        carrier = carriers[index % len(carriers)] if carriers else ""
        if name == "tags":
            start, end = make_tag(rng)
            cases.append(Case(f"{start}{carrier}{end}", (start, end)))
            continue
        text = COPIES[name](rng)
        end_mark = END_MARK.search(carrier)
        before_mark = carrier[: end_mark.start()] + f" {text}{end_mark[0]}" if end_mark else f"{carrier} {text}"
        forms = (text, f"{carrier} {text}", f"{text} {carrier}", before_mark)
        cases.append(Case(forms[index % len(forms)].strip(), (text,)))
    return cases


def _inside_cases(language: str, carriers: Sequence[str]) -> list[Case]:
    """Make sentences with texts inside that must be kept: 200 of challenge.toml, every kind in each ten.

    Carriers are used where the table has no sentences in the language; without carriers, the texts stand alone.
    """
    kinds = tomllib.loads(Path(__file__).with_name("challenge.toml").read_text(encoding="utf-8"))["kinds"]
    cases = []
    for number in range(_INSIDE_LINES // len(kinds)):
        turn, column = divmod(number, _SENTENCES)
        for index, kind in enumerate(kinds):
            carrier = carriers[(number * len(kinds) + index) % len(carriers)] if carriers else ""
            own = kind.get(base_language(language))
            pieces = (own[column] if own else _with_gap(carrier, pair="pair" in kind)).split("_")
            gaps = len(pieces) - 1
            texts = [kind["texts"][(gaps * (turn + column) + gap) % len(kind["texts"])] for gap in range(gaps)]
            source = "".join(chain(*zip_longest(pieces, texts, fillvalue="")))
            cases.append(Case(source, tuple(texts), kind=kind["name"]))
    return cases


def _with_gap(carrier: str, *, pair: bool) -> str:
    """Return a sentence with a gap `_` before its middle word, or with a gap on each side of that word."""
    words = carrier.replace("_", " ").split()
    middle = len(words) // 2
    words[middle : middle + pair] = [f"_{''.join(words[middle : middle + 1])}_"] if pair else ["_"]
    return " ".join(words)
