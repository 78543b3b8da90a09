"""A language code means the same wherever it is read, in every spelling."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata

import pytest
from langcodes import Language as Tag

from bitext.languages import (
    _ENGLISH_NAMES,
    SENTENCE_ENDS,
    base_language,
    bleu_language,
    capitalize,
    end_mark,
    full_stop,
    has_blanks_between_words,
    is_right_to_left,
    language_name,
    language_names,
    libretranslate_code,
    lower,
    match_language,
    normal_form,
    script_of,
    sentence_separator,
    upper,
)

# Codes of one meaning: normal form, script, name -> spellings.
SPELLINGS = {
    ("de", "Latn", "German"): "de DE deu ger deu_Latn de_XX de-1996",
    ("de-AT", "Latn", "German (Austria)"): "de-AT de_at ger-AT de_AT.UTF-8 de_AT@euro",
    ("zh", "Hans", "Chinese"): "zh ZH zho chi cmn zh-Hani zh_XX",
    ("zh-Hans", "Hans", "Chinese (Simplified)"): "zh-Hans zh_HANS zho_Hans cmn_Hans zh-cmn-Hans zho_simpl zh-CHS",
    ("zh-CN", "Hans", "Chinese (Simplified)"): "zh-CN zh_cn zho-CN cmn-CN cn",
    ("zh-SG", "Hans", "Chinese (Simplified, Singapore)"): "zh-SG zh_SG",
    ("zh-Hant", "Hant", "Chinese (Traditional)"): "zt ZT zh-Hant zho_Hant cmn_Hant zho_trad zh-cht",
    ("zh-TW", "Hant", "Chinese (Traditional)"): "zh-TW zh_tw",
    ("zh-HK", "Hant", "Chinese (Traditional, Hong Kong)"): "zh-HK zh_HK",
    ("zh-Latn", "Latn", "Chinese (Latin)"): "zh-Latn zh_Latn_pinyin",
    ("yue", "Hant", "Yue Chinese"): "yue yue_Hant zh-yue",
    ("ja", "Jpan", "Japanese"): "ja jpn jpn_Jpan jp ja_XX",
    ("ko", "Kore", "Korean"): "ko kor kor_Hang ko-Kore",
    ("nb", "Latn", "Norwegian"): "nb nob no nor NO nob_Latn",
    ("nn", "Latn", "Norwegian Nynorsk"): "nn nno nno_Latn",
    ("he", "Hebr", "Hebrew"): "he iw heb heb_Hebr",
    ("id", "Latn", "Indonesian"): "id in ind ind_Latn",
    ("ro", "Latn", "Romanian"): "ro mo ron rum",
    ("ar", "Arab", "Arabic"): "ar ara arb_Arab",
    ("fa", "Arab", "Persian"): "fa fas per pes_Arab",
    ("tl", "Latn", "Tagalog"): "tl tgl fil tgl_Latn",
    ("cs", "Latn", "Czech"): "cs ces cze cz",
    ("pt", "Latn", "Portuguese"): "pt por por_Latn pt_XX",
    ("pt-BR", "Latn", "Portuguese (Brazil)"): "pb pt-BR pt_br por-BR",
    ("en-US", "Latn", "English"): "en-US en_us EN-us",
    ("es-419", "Latn", "Spanish (Latin America)"): "es-419 spa_419",
    ("sr", "Cyrl", "Serbian"): "sr srp srp_Cyrl",
    ("sr-Latn", "Latn", "Serbian (Latin)"): "sr-Latn srp_Latn sr@latin sh hbs",
    ("th", "Thai", "Thai"): "th tha tha_Thai",
    ("my", "Mymr", "Burmese"): "my mya bur mya_Mymr",
    ("xx", "", "xx"): "xx",
    ("de2", "", "de2"): "de2",
    ("src", "", "src"): "src",
    ("tgt", "", "tgt"): "tgt",
    ("x-klingon", "", "x-klingon"): "x-klingon",
    ("", "", ""): " ",
}


@pytest.mark.parametrize(("meaning", "codes"), SPELLINGS.items(), ids=lambda value: value[0] or "none")
def test_a_code_has_one_meaning_in_all_spellings(meaning: tuple[str, str, str], codes: str) -> None:
    normal = meaning[0]
    for code in codes.split() or [""]:
        assert (normal_form(code), script_of(code), language_name(code)) == meaning, code
        assert base_language(code) == (normal if normal.startswith("x-") else normal.partition("-")[0]), code


@pytest.mark.parametrize("code", ["", "-", "a", "de-de-de", "中文", "\0", "art-lojban", "zh-" * 5000])
def test_text_that_is_no_code_means_nothing_and_raises_nothing(code: str) -> None:
    assert match_language(code, ["zh", "en"]) is None
    assert (bleu_language(code), sentence_separator(code), full_stop(code)) in {("", " ", "."), ("zh", "", "。")}
    assert isinstance(language_name(code), str)


@pytest.mark.parametrize(
    ("codes", "bleu", "blanks", "separator", "stop"),
    [
        ("de deu_Latn en-US xx src vi", "", True, " ", "."),
        ("zh zho cmn_Hans zh-TW zt yue zh-CN wuu lzh", "zh", False, "", "。"),
        ("ja jpn jpn_Jpan ja-JP ja-Hira", "ja", False, "", "。"),
        ("ko kor kor_Hang ko_KR", "ko", True, " ", "."),
        ("zh-Latn ja-Latn ko-Latn ru srp_Latn", "", True, " ", "."),
        ("th tha_Thai lo lao", "", False, " ", ""),
        ("km khm_Khmr", "", False, " ", "។"),
        ("my mya", "", False, " ", "။"),
        ("hi hin_Deva ne npi", "", True, " ", "।"),
        ("ur urd_Arab", "", True, " ", "۔"),
        ("fa mr", "", True, " ", "."),
    ],
)
def test_writing_depends_on_the_script(codes: str, bleu: str, blanks: bool, separator: str, stop: str) -> None:
    for code in codes.split():
        writing = bleu_language(code), has_blanks_between_words(code), sentence_separator(code), full_stop(code)
        assert writing == (bleu, blanks, separator, stop), code


def test_languages_of_some_scripts_are_written_from_right_to_left() -> None:
    assert all(map(is_right_to_left, ["ar", "arb_Arab", "fa", "ur", "he", "yi", "dv", "ks", "ms-Arab", "az_Arab"]))
    assert not any(map(is_right_to_left, ["ks-Deva", "ms", "az", "ja", "de", "x-unknown", ""]))


@pytest.mark.parametrize(
    ("code", "marks"),
    [
        ("de", [".", "?", "!", "...", ":", ";", ","]),
        ("zh-TW", ["。", "？", "！", "……", "：", "；", "，"]),
        ("ja", ["。", "？", "！", "…", "：", "；", "、"]),
        ("fas", [".", "؟", "!", "...", ":", "؛", "،"]),
        ("ell", [".", ";", "!", "...", ":", "·", ","]),
        ("fr", [".", "\u00a0?", "\u00a0!", "...", "\u00a0:", "\u00a0;", ","]),
        ("", [".", "?", "!", "...", ":", ";", ","]),
    ],
)
def test_an_end_mark_is_written_as_the_language_writes_it(code: str, marks: list[str]) -> None:
    assert [end_mark(kind, code) for kind in ".?!…:;,"] == marks


@pytest.mark.parametrize(
    ("known", "matches"),
    [
        ("zh en", {"zh-CN": "zh", "zh-SG": "zh", "zho": "zh", "cmn_Hans": "zh", "zh-Hans": "zh", "en-US": "en"}),
        ("zh en", dict.fromkeys(("zh-TW", "zh-HK", "zt", "zh-Hant", "yue", "zh-Latn", "ja", "eng-Cyrl"))),
        ("zh-Hant en", {"zh-TW": "zh-Hant", "zt": "zh-Hant", "zh-HK": "zh-Hant", "cmn_Hant": "zh-Hant"}),
        ("zh-Hant en", dict.fromkeys(("zh", "zh-CN", "zh-Hans", "zho", "zh-SG"))),
        ("zh-Hant zh-Hans", {"zh": "zh-Hans", "ZH_cn": "zh-Hans", "zh-MO": "zh-Hant"}),
        ("zho_Hans eng_Latn", {"zh": "zho_Hans", "zh-CN": "zho_Hans", "en": "eng_Latn", "en-GB": "eng_Latn"}),
        ("nb", {"no": "nb", "nor": "nb", "no-NO": "nb", "nob": "nb", "nn": None, "da": None, "sv": None}),
        ("no", {"nb": "no", "nn": None}),
        ("nn nb", {"no": "nb", "nno": "nn"}),
        ("pt pt-BR", {"pb": "pt-BR", "pt": "pt", "pt-PT": "pt", "pt-AO": "pt", "PT-br": "pt-BR"}),
        ("pt", {"pb": "pt", "pt-BR": "pt"}),
        ("pt-BR", {"pt": "pt-BR", "pb": "pt-BR"}),
        ("pt-BR pt-PT", {"pt": "pt-PT"}),
        ("en-US en-GB", {"en": "en-US", "en-AU": "en-GB", "eng": "en-US", "en-PR": "en-US"}),
        ("de-AT de", {"de": "de", "de-CH": "de", "deu": "de", "DE_at": "de-AT"}),
        ("sr", {"sr-Latn": None, "sr-Cyrl": "sr", "sr-RS": "sr", "hr": None, "sh": None}),
        ("sr-Latn", {"sr": None, "sh": "sr-Latn", "sr-ME": "sr-Latn"}),
        ("he id", {"iw": "he", "in": "id", "ms": None}),
        ("xx de2", {"XX": "xx", "xx-YY": "xx", "de": None, "de2": "de2"}),
        ("src sc", {"src": "src", "srd": "sc"}),
        ("", {"": None, "de": None}),
    ],
)
def test_an_asked_code_matches_the_same_language_in_the_same_script(
    known: str, matches: dict[str, str | None]
) -> None:
    assert {asked: match_language(asked, known.split()) for asked in matches} == matches


def test_names_of_several_languages_differ() -> None:
    expected = {"zh": "Chinese", "zh-Hant": "Chinese (Traditional)", "de": "German, de", "deu": "German, deu"}
    assert language_names(list(expected)) == expected


@pytest.mark.parametrize(
    ("expected", "codes"),
    [("zh", "zh zho_Hans zh-CN"), ("zt", "zh-TW zho_Hant zt"), ("pb", "pt-BR pb"), ("pt", "pt por"), ("nb", "no"),
     ("de", "deu de_AT"), ("yue", "yue"), ("xx", "xx")],
)  # fmt: skip
def test_libretranslate_has_its_own_codes(expected: str, codes: str) -> None:
    assert [libretranslate_code(code) for code in codes.split()] == [expected] * len(codes.split())


def test_codes_that_are_read_without_langcodes_mean_the_same_with_it() -> None:
    """The codes in `NAMES` skip it, as its import takes longer than the rest of a command such as --help."""
    assert [Tag.get(code).prefer_macrolanguage().to_tag() for code in _ENGLISH_NAMES] == list(_ENGLISH_NAMES)
    program = "import sys, bitext.languages as l; l.base_language('de'); assert 'langcodes' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_codes_of_clients_do_not_pile_up() -> None:
    kept = Tag._INSTANCES, Tag._PARSE_CACHE
    before = [len(store) for store in kept]
    assert match_language("en-x-client1", ["de", "en"]) == "en"
    assert match_language("deu-AQ", ["de", "en"]) == "de"
    assert [len(store) for store in kept] == before


def test_the_marks_that_end_a_sentence_are_those_of_unicode() -> None:
    """A newer version of Unicode may have more, of scripts that it adds."""
    regex = pytest.importorskip("regex")
    ours, unicode = re.compile(f"[{SENTENCE_ENDS}]"), regex.compile(r"[\p{Sentence_Terminal}…]")
    for character in map(chr, range(0x10000)):
        if unicodedata.category(character) != "Cn":
            assert bool(ours.match(character)) == bool(unicode.match(character)), f"U+{ord(character):04X}"
    assert all(ours.match(full_stop(code)) for code in ("hy", "am", "km", "my", "ur", "hi", "zh", "en"))


@pytest.mark.parametrize(
    ("code", "text", "small", "large", "first"),
    [
        ("tr", "IĞDIR İyi ısı", "ığdır iyi ısı", "IĞDIR İYİ ISI", "Iğdır iyi ısı"),
        ("az-Latn", "iIıİ", "iııi", "İIIİ", "İııi"),
        ("tur_Latn", "I\u0307I\u0323\u0307", "ii\u0323", "I\u0307I\u0323\u0307", "I\u0307i\u0323"),
        ("lt", "ÌÍĨ J\u0301 Į\u0303 I", "i\u0307\u0300i\u0307\u0301i\u0307\u0303 j\u0307\u0301 į\u0307\u0303 i",
         "ÌÍĨ J\u0301 Į\u0303 I", "Ìi\u0307\u0301i\u0307\u0303 j\u0307\u0301 į\u0307\u0303 i"),
        ("lt", "i\u0307\u0301", "i\u0307\u0301", "I\u0301", "I\u0307\u0301"),
        ("el", "ΟΔΟΣ ΣΑΣ", "οδος σας", "ΟΔΟΣ ΣΑΣ", "Οδος σας"),
        ("de", "Größe IN", "größe in", "GRÖSSE IN", "Größe in"),
        ("", "ISI", "isi", "ISI", "Isi"),
    ],
)  # fmt: skip
def test_case_is_that_of_the_language(code: str, text: str, small: str, large: str, first: str) -> None:
    assert (lower(text, code), upper(text, code), capitalize(text, code)) == (small, large, first)
