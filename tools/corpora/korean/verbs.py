"""The Korean predicate at the end of a sentence: polite style, plain and honorific, denied or not."""

from __future__ import annotations

from functools import cache

from tools.corpora.korean.hangul import Predicate

__all__ = ["conclude", "deny", "past_said", "quality"]


@cache
def conclude(verb: Predicate, mode: str, honorific: bool, speaker: bool) -> str:
    """The predicate of a statement or question.

    Args:
        verb: the verb or adjective.
        mode: present, progressive, past, future, can, must, want or intend.
        honorific: said of somebody who is looked up to.
        speaker: said of oneself: 싶어요 instead of 싶어 해요.
    """
    root = verb.honorific
    if mode == "present":
        return f"{root}세요" if honorific else f"{verb.infinitive}요"
    if mode == "past":
        return f"{root}셨어요" if honorific else f"{verb.past_stem()}어요"
    if mode == "future":
        return f"{root}실 거예요" if honorific else f"{verb.future_stem()} 거예요"
    if mode == "can":
        return f"{root}실 수 있어요" if honorific else f"{verb.future_stem()} 수 있어요"
    if mode == "must":
        return f"{root}셔야 해요" if honorific else f"{verb.infinitive}야 해요"
    if mode == "progressive":
        return f"{verb.stem}고 {'계세요' if honorific else '있어요'}"
    if mode == "intend":
        return f"{verb.before_condition()}려고 {'하세요' if honorific else '해요'}"
    assert mode == "want", mode
    if speaker:
        return f"{verb.stem}고 싶어요"
    return f"{verb.stem}고 싶어 {'하세요' if honorific else '해요'}"


@cache
def deny(verb: Predicate, mode: str, honorific: bool) -> str:
    """The predicate denied: 안 가요, 청소하지 않았어요, 못 갔어요; adjectives like 하다-verbs.

    Args:
        verb: the verb or adjective.
        mode: present, past, future, can, or could (못, in the past).
        honorific: said of somebody who is looked up to.
    """
    if mode == "can":
        return f"{verb.honorific}실 수 없으세요" if honorific else f"{verb.future_stem()} 수 없어요"
    word, plain = ("못", "past") if mode == "could" else ("안", mode)
    if not verb.is_hada:
        return f"{word} {conclude(verb, plain, honorific, False)}"
    return f"{verb.stem}지 {long_denial(mode, honorific)}"


def long_denial(mode: str, honorific: bool) -> str:
    """What follows -지."""
    if mode == "could":
        return "못하셨어요" if honorific else "못했어요"
    forms = {
        "present": ("않아요", "않으세요"),
        "past": ("않았어요", "않으셨어요"),
        "future": ("않을 거예요", "않으실 거예요"),
    }
    return forms[mode][honorific]


def past_said(verb: Predicate) -> str:
    """What was done, as reported: 갔다고."""
    return f"{verb.past_stem()}다고"


def quality(adjective: Predicate, mode: str, honorific: bool, negative: bool) -> str:
    """An adjective as predicate: 커요, 컸어요, 크지 않아요, 친절하세요."""
    if negative:
        return f"{adjective.stem}지 {long_denial(mode, honorific)}"
    return conclude(adjective, mode, honorific, False)
