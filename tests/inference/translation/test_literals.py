"""Literals, which are copied unchanged, and the spans between them, which are translated."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitext.letters import has_letters
from bitext.literals import layout_kinds, literals_of
from manyheads.data.augment_copies import COPIES, make_tag
from manyheads.inference.translation.literals import sentences_with_literals, spans_to_translate

WITHOUT_BLANKS = """
{name} {user-name} {person.name} {0} {} {0!r:>10} {0:N2} {0,10:N2} {x:.2f} {:>8} {items[0].id} {0:{w}.{p}f}
{이름} {n}px {count,number} {{name}} {{person.name}} {{{raw}}} {{#if}} {{>partial}} ${name} ${USER:-x} #{x}
%{name} @{x} {!Account.Name} %s %d %i %u %x %c %5.2f %-10s %05d %+d %'d %*d %.*f %lld %zu %ld %1$s %2$d %@
%1$@ %I64d %Y-%m %(name)s %(name)05.2f %<name>s %<price>.2f %USER% %user.name% %% %1 %L1 %v %dpx $USER
$user.name $t(key) $(date) $1 @@name@@ @version@ ##NAME## __NAME__ __USER_NAME__ *|FNAME|* [name] [Name]
[NAME] [user_id] [USER_ID] [orderId] [id1] [[name]] [[Seite]] [/quote] [url=x.org] :blobcat: :+1:
:skin-tone-2: :user_id :name `code` `a.b(c)` `x` &amp; &lt; &nbsp; &#8217; &#x1F600; M&uuml;ller it&#39;s
AT&amp;T #fff #00FF00 #1a2 #tag #Straße #여행 @tom @babel/core https://x.org/a?b=1&c=2#d www.x.org
mailto:a@x.org ftp://x.org/y myapp://open/1 x.org/a tom@x.org a.b+c@x-y.co.uk wals.info <b> </b> <br/> <x>
C:\\Users\\tom\\a.txt \\\\server\\share /usr/local/bin ~/notes ./run.sh ../a/b src/main.py README.md
config.toml Node.js 550e8400-e29b-41d4-a716-446655440000 v1.2 v7.1.17 V2.0 1.2.3-beta 10.15.7 192.168.0.1
2001.1.2.3 😀 👍🏽 ⭐ ❤️ 👨‍👩‍👧 \\n \\t \\" \\u00e4 \\(name)
[X7X] [X123X] [VAR1] [ProductName] [name/ver] [Root.GetName] [node:title:value] [%s] [%1$s:name]
[^1] [^note-2] [1]_ [#]_ [#a]_ [name]_ [@smith2004] [!NOTE] :ref:`x` :py:func:`a.b`
$E=mc^2$ $x$ $x_i$ $\\alpha$ $$x^2$$ $2^n$ \\(x=1\\) \\[x=1\\] \\cite{key} \\ref{fig:1} \\eqref{a} \\LaTeX{} \\item
\\N \\h {\\an8} {\\i1} {\\pos(10,20)} {\\fad(1,2)\\b1} \\V[1] \\N[1] $\\n $(^Name) <00:00:01.000>
<1> </1> <0/> <#if> </#if> <@U123> <@!12> <:smile:123> [1} {1] {1> <1} &brandShortName; __MSG_appName__
%#@files@ %0:s %1% %|1$5| %<PRIu64> %1!s! %[1]d %qs %1$S {!x} {:?} {a}px {.class} {#id} {$a->name}
"""
COPIED = [
    *WITHOUT_BLANKS.split(),
    "{ name }", "{ $name }", "{ -brand }", "{ NUMBER($n, digits: 2) }", "{d, date, short}",
    "{n, number, ::currency/USD}", "{n,choice,0#none|1#one}", "{0:yyyy-MM-dd HH:mm}", "{t:%d %b %Y}",
    "{x: >10}", "{{ a.b | upper }}", "{{x, format}}", "{% if a %}", "{# note #}", "{@html x}", "${a + b}",
    "% 5d", "`code span`", "``a b``", "$t(ns:key, x)", "%(a b)s", "<a href='x y'>", "<!-- a b -->", "<%= x %>",
    "$E = mc^2$", "$a + b = c$", "$$\\sum_{i=1}^n x_i$$", "\\( a + b \\)", "\\[ a = b \\]", "[@smith2004, p. 5]",
    "[form-7 id=\"1\" title='x y']", "{$x :number style=percent}", '{ -brand(case: "x") }', "{#id .class}", "<1 />",
    "\\includegraphics[width=2cm]{a}", ":ref:`der Text <label>`", "<?php x ?>", "+49 30 123456",
    "+49 (30) 1234-5678",
]  # fmt: skip

PROSE = [
    "Ein Hund läuft.", "17:45", " * * * ", "", "Tom kam um 17:45 Uhr.", "1 + 1 = 2, C++ und V8, 3+4567",
    "100 % sicher, x < y und y > z, a@b", "100% sure, 100% definitely, 5% discount",
    "50 % der Leute, 50 %ige, 5-%-ige, 10%-ige", "6 %zu verringern", "in % d. BIP",
    "20% inflation, 3% unemployment, 10 % im Jahr", "Das kostet 5 $ oder $2.50.",
    "It costs $5 and $10, or US$3.", "$1 million, $US 10", "(c) 2020, (R), (a)",
    "3:30:15 at 12:30, a ratio of 1:2:3", "Note: this: that", "Note:this:that", "{", "}", "{ a b }",
    "{see the note below}", ":-) :) ;-) :D :p :o XD <3 :( ^^ \\o/", "[sic] [laughs] [Applause] [...] [1] [d]er",
    "und/oder, he/she, km/h, 24/7, 1/2, w/o", "Am 3.10.2012, 1.2.2020, 12.30 Uhr, 3.5", "1.234.567 Euro",
    "d.h., z.B., e.g. this, i.e. that", "C# and F#, #1, # 3", "AT&T, R&D; Q&A; Tom&Jerry;",
    "it`s what I don`t know", "`` quoted '' and `so'", "`공포`라고", "Le prix : 5 €", "std::string", "snake_case",
    "It is $5 + tax, and $10 = €9.", "$5+$10=$15", "US$5 < US$6, 5$ < 6$", "[1], [2], [Smith 2004]", "und\\oder",
    "<3, 2 <1", "a [b} c", "Vers 3:16 [vgl. Röm 8]", "What?!", "\u3164 \u115f",
    "A* and B*, 2*3", "[siehe unten] (oben)",
]  # fmt: skip

LONG_LINES = [
    part * (5_000 // len(part)) + end + "z {x}"
    for part in ("(", "[", "{", "<", "%", "$", "#", ":", "`", "\\", "/", ".", "a", "1", "&", "a@", "a.", "a/",
                 "[a", "{{", "{a ", "%(", "$a", "&amp;", "`a ", ":ab:", "a://", "www.", "<a", "![", "](a", "+1 ",
                 "$a=", "$a=b$", "$$a=", "\\(a=", "\\[a_", "\\a{", "\\aa ", "[[a|", "[a b=c ", "[a b='", ":a:`",
                 "{\\", "{#a ", "%<", "[^a", "[@a;", "[%a", "{/b}", "{$a :b ", "\\N", "<br>-", "[a.", "AB1",
                 "*a", "_a ", "~~a", "|", "> ", "\t", "   ", "0123-", "[%", "{#", "{a, plural, b {", "a_")
    for end in ("", "@")
]  # fmt: skip


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in spans_to_translate(text)]


AROUND = {
    "{}": [],
    "Ein Hund {} hier": ["Ein Hund", "hier"],
    "Hier\t{}  da": ["Hier", "da"],
    "({}) ist da": ["ist da"],
    "„{}“, sagt er": ["sagt er"],
    'Es ist "{}"': ["Es ist"],
    "Er hat {}.": ["Er hat"],
}


def test_a_literal_is_copied_whole_wherever_it_stands() -> None:
    for text in COPIED:
        assert {line: parts(line.replace("{}", text)) for line in AROUND} == AROUND, text


def test_prose_has_no_literals() -> None:
    for text in PROSE:
        assert literals_of(text) == [], text
        assert parts(text) == ([text.strip()] if has_letters(text) else []), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Siehe https://example.org/a?b=1, wenn du willst.", ["Siehe", "wenn du willst."]),
        ("Hallo 😀👍🏽!", ["Hallo"]),
        ("<b>Hallo <i class='x'>Welt</i></b>!", ["Hallo", "Welt"]),
        ("Frag Tom (tom@x.org).", ["Frag Tom"]),
        ("서울은 https://a.b/c에서 보세요.", ["서울은", "에서 보세요."]),
        ("{이름}님, @tom에게", ["님,", "에게"]),
        ("„www.x.org“ sagte er.", ["sagte er."]),
        ("Siehe [die Seite](https://x.org) und ![Bild](a.png).", ["Siehe", "die Seite", "und", "Bild"]),
        ("[b]Fett[/b] # Titel", ["Fett", "Titel"]),
        ("{count, plural, one {# Datei} other {# Dateien}}", ["Datei", "Dateien"]),
        ("{g, select, male {Er mag {x}} other {Sie mögen {x}}}", ["Er mag", "Sie mögen"]),
        ("100%% sicher, $1 und $2", ["sicher,", "und"]),
        ("Zeile\\nZwei", ["Zeile", "Zwei"]),
        ("{\\i1}Hallo{\\i0} Welt", ["Hallo", "Welt"]),
        ("{b}Hallo{/b} {0}Welt", ["Hallo", "Welt"]),
        ("<1>Hallo</1> [1}Welt{1] {2>da<2}", ["Hallo", "Welt", "da"]),
        ("\\emph{Hund} und \\textbf[x]{rote Katze}", ["Hund", "und", "rote Katze"]),
        ("Siehe \\href{https://x.org}{die Seite}.", ["Siehe", "die Seite"]),
        ("Siehe [[Seite|die Seite]] und [[Datei:a.png|mini|das Bild]].", ["Siehe", "die Seite", "und", "das Bild"]),
        ("Nach $E = mc^2$, siehe [^1], gilt $a$.", ["Nach", "siehe", "gilt"]),
    ],
)
def test_the_text_between_literals_is_translated(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


def test_every_text_that_is_made_up_to_be_copied_is_a_literal() -> None:
    for seed in range(300):
        for name in ("URLs", "emoji", "placeholders"):
            text = COPIES[name](Random(seed))
            assert literals_of(f"Ein {text} da") == [(4, 4 + len(text))], text
        start, end = make_tag(Random(seed))
        assert parts(f"{start}Hund{end}") == ["Hund"]


def test_the_time_for_a_long_line_grows_with_its_length() -> None:
    """A pattern that tries every division of a line would take hours."""
    for text in LONG_LINES:
        assert spans_to_translate(text) is not None


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("- Ja, komm.\\N- Nein!", ["Ja, komm.", "Nein!"]),
        ("- Ja.<br />– Nein.", ["Ja.", "Nein."]),
        ("Ein Hund läuft\\ndurch", ["Ein Hund läuft\\ndurch"]),
        ("[^1]: Ein Satz.", ["Ein Satz."]),
    ],
)
def test_the_speakers_of_a_subtitle_and_the_text_of_a_footnote_are_texts_of_their_own(
    line: str, texts: list[str]
) -> None:
    assert [line[start:end] for start, end in spans_to_translate(line, layout_kinds)] == texts


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("Ein [1}roter{1] Hund", [["Ein ", "roter", " Hund"]]),
        ("Ein \\emph{roter} Hund", [["Ein ", "roter", " Hund"]]),
        ("{n, plural, one {# Datei} other {# Dateien}}", []),
        ("} other {Dateien}}", []),
    ],
)
def test_the_branches_of_a_message_are_no_sentence_together(line: str, texts: list[list[str]]) -> None:
    assert [sentence.texts for sentence in sentences_with_literals(line)] == texts


@example("1 #")  # the end of a heading that has no beginning
@given(st.text(alphabet="ab <>{}@.:/wh1😀가① \t%$#[]_&;-+`\\(),*_~|>•=^{}Nn", max_size=40))
def test_the_spans_are_in_order_and_hold_letters(text: str) -> None:
    spans = spans_to_translate(text)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(any(map(str.isalpha, text[start:end])) for start, end in spans)
