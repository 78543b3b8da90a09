"""Korean predicates at the end of a sentence: polite style, plain or honorific, affirmative or negative."""

from __future__ import annotations

from functools import cache

from tools.corpora.korean.hangul import Predicate

__all__ = ["adjective_predicate", "conjugate", "negate", "reported_past"]


@cache
def conjugate(verb: Predicate, mode: str, honorific: bool, speaker: bool) -> str:
    """Return the predicate of a statement or question.

    Args:
        verb: the verb or adjective.
        mode: present, progressive, past, future, can, must, want or intend.
        honorific: whether the subject takes honorific verbs.
        speaker: whether the subject is the speaker: 싶어요 instead of 싶어 해요.
    """
    honorific_base = verb.honorific
    if mode == "present":
        return f"{honorific_base}세요" if honorific else f"{verb.infinitive}요"
    if mode == "past":
        return f"{honorific_base}셨어요" if honorific else f"{verb.past_stem()}어요"
    if mode == "future":
        return f"{honorific_base}실 거예요" if honorific else f"{verb.future_stem()} 거예요"
    if mode == "can":
        return f"{honorific_base}실 수 있어요" if honorific else f"{verb.future_stem()} 수 있어요"
    if mode == "must":
        return f"{honorific_base}셔야 해요" if honorific else f"{verb.infinitive}야 해요"
    if mode == "progressive":
        return f"{verb.stem}고 {'계세요' if honorific else '있어요'}"
    if mode == "intend":
        return f"{verb.conditional_stem()}려고 {'하세요' if honorific else '해요'}"
    assert mode == "want", mode
    if speaker:
        return f"{verb.stem}고 싶어요"
    return f"{verb.stem}고 싶어 {'하세요' if honorific else '해요'}"


@cache
def negate(verb: Predicate, mode: str, honorific: bool) -> str:
    """Return the negative predicate: 안 가요, 청소하지 않았어요, 못 갔어요; adjectives as 하다 verbs.

    Args:
        verb: the verb or adjective.
        mode: present, past, future, can, or could (못, in the past).
        honorific: whether the subject takes honorific verbs.
    """
    if mode == "can":
        return f"{verb.honorific}실 수 없으세요" if honorific else f"{verb.future_stem()} 수 없어요"
    word, plain_mode = ("못", "past") if mode == "could" else ("안", mode)
    if not verb.is_hada:
        return f"{word} {conjugate(verb, plain_mode, honorific, False)}"
    return f"{verb.stem}지 {long_negation(mode, honorific)}"


def long_negation(mode: str, honorific: bool) -> str:
    """Return the ending after -지 in a long negation."""
    if mode == "could":
        return "못하셨어요" if honorific else "못했어요"
    forms = {
        "present": ("않아요", "않으세요"),
        "past": ("않았어요", "않으셨어요"),
        "future": ("않을 거예요", "않으실 거예요"),
    }
    return forms[mode][honorific]


def reported_past(verb: Predicate) -> str:
    """Return the past of reported speech: 갔다고."""
    return f"{verb.past_stem()}다고"


def adjective_predicate(adjective: Predicate, mode: str, honorific: bool, negative: bool) -> str:
    """Return an adjective as predicate: 커요, 컸어요, 크지 않아요, 친절하세요."""
    if negative:
        return f"{adjective.stem}지 {long_negation(mode, honorific)}"
    return conjugate(adjective, mode, honorific, False)
