"""HTML is split into texts, and its tags are projected onto the translations."""

from __future__ import annotations

import time
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bitext.letters import has_letters
from manyheads.documents.blocks import Block
from manyheads.documents.document import ReadOptions
from manyheads.documents.html import read, read_html, read_tags
from manyheads.documents.units import Part, Translated


def blocks(source: str) -> list[Block]:
    return [unit.block for unit in read_html(source)]


def texts_of(source: str) -> list[str]:
    return [unit.text for unit in Part(source, [read_html]).units]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<p>Ein <b>Hund</b> läuft.</p><p>Gut.</p>", ["Ein Hund läuft.", "Gut."]),
        ("a<br>b<hr/>c", ["a", "b", "c"]),
        ("Ein &lt;Hund&gt; &amp; &uuml;ber", ["Ein <Hund> & über"]),
        ("<p>Ein\n   Hund</p>", ["Ein Hund"]),
        ("<code>nein</code> ja <pre>nein</pre> auch", ["ja", "auch"]),
        ('Ein <span translate="no">nein</span> Hund', ["Ein Hund"]),
        ('<div class="x notranslate">nein <div>nein</div> nein</div>ja', ["ja"]),
        ('Sieh <a class="mention hashtag" href="/t">#<span>nein</span></a> an', ["Sieh an"]),
        ("<script>if (a < b) nein</script>ja", ["ja"]),
        ("<style>p > a {}</style>ja<textarea>nein</textarea>", ["ja"]),
        ("<ul><li>eins<li>zwei</ul>", ["eins", "zwei"]),
        ("<code>nie geschlossen ja", []),
        ("a < b und c > d", ["a < b und c > d"]),
        ('<head><meta name="description" content="nein"><title>Ein Hund</title><style>nein</style></head>',
         ["Ein Hund"]),
        ('<img alt="nein"><input placeholder="nein"><b title="nein" aria-label="nein">ja</b>', ["ja"]),
        ("<option>eins</option><button>zwei</button><label>drei</label>", ["eins", "zwei", "drei"]),
        ("<!-- nein --><template>nein</template><noscript>nein</noscript><kbd>nein</kbd>", []),
        ('<p TRANSLATE=" NO ">nein</p><p class="a\nnotranslate">nein</p><p translate="yes">ja</p>', ["ja"]),
    ],
)  # fmt: skip
def test_the_translated_texts_are_the_running_text(source: str, texts: list[str]) -> None:
    assert texts_of(source) == [text for text in texts if any(letter.isalpha() for letter in text)]


INLINE_ELEMENTS = (
    "a abbr acronym applet b bdi bdo big blink button cite data del dfn em font i ins label map mark marquee meter "
    "nobr output progress q rb ruby s slot small span strike strong sub sup time tt u var "  # of HTML
    "g mrk pc hi f0 x-y my-link string"  # of XLIFF, of TMX, of a client
)
ATOMS = (
    "audio canvas code iframe kbd math noembed noframes noscript object picture rp rt rtc samp script style svg "
    "template textarea video bpt ept it ph ut"
)
VOID_ELEMENTS = "area base basefont bgsound embed img input keygen link meta param track wbr"
BORDERS = (
    "address article aside blockquote caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup legend li main menu nav ol optgroup option p search section "
    "select summary table tbody td tfoot th thead title tr ul seg source target segment note"
)


@pytest.mark.parametrize(
    ("names", "form", "texts"),
    [
        (INLINE_ELEMENTS, "Der <{0} id='1'>rote</{0}> Hund", ["Der rote Hund"]),
        (f"{INLINE_ELEMENTS} {ATOMS} x bx ex sc ec cp sm em", "Der <{0} id='1'/>Hund", ["Der Hund"]),
        (ATOMS, "Der <{0}>nein</{0}> Hund", ["Der Hund"]),
        (VOID_ELEMENTS, "Der <{0}>Hund", ["Der Hund"]),
        (BORDERS, "Der <{0}>Hund</{0}> bellt", ["Der", "Hund", "bellt"]),
        ("br hr source col", "Der<{0}>Hund", ["Der", "Hund"]),
        ("pre listing xmp plaintext", "Der <{0}>nein", ["Der"]),
    ],
)
def test_a_text_ends_only_at_an_element_that_html_or_a_translation_format_shows_as_a_block(
    names: str, form: str, texts: list[str]
) -> None:
    assert {name: texts_of(form.format(name)) for name in names.split()} == dict.fromkeys(names.split(), texts)


def test_a_caller_names_further_elements_that_end_a_text() -> None:
    source = "<string name='a'>Der <xliff:g>rote</xliff:g> Hund</string><string>Die Katze</string>"
    assert [unit.text for unit in read_html(source, blocks=["string"])] == ["Der rote Hund", "Die Katze"]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>を読む", ["漢字を読む"]),
        ("<ruby>漢<rt>kan<rp>)</ruby>を<ruby>読<rt>yo<rt>mi</ruby>む", ["漢を読む"]),  # end tags may be left out
        ("<ruby><rb>漢</rb><rtc><rt>kan</rt></rtc></ruby>字", ["漢字"]),
        ("Drücke <button>Los</button> jetzt", ["Drücke Los jetzt"]),
        ("<button>Ja</button> <button>Nein</button>\n<label>Vielleicht</label>", ["Ja", "Nein", "Vielleicht"]),
        ("Nimm <mrk mtype='protected'>nein</mrk> mit", ["Nimm mit"]),
    ],
)
def test_readings_stay_and_buttons_in_a_row_are_texts_of_their_own(source: str, texts: list[str]) -> None:
    assert texts_of(source) == texts


PIECES = st.sampled_from(
    ["<b>", "</b>", "<i>", "</i>", '<a href="x">', "</a>", "<p>", "</p>", "<br>", "<code>", "</code>", "<img>",
     "<!--", "-->", "<span translate=no>", "</span>", "<", ">", "&", "&lt;", "&nbsp;", "<div class=notranslate>",
     "</div>", " ", "\n", "Hund", "läuft.", "(", ")", "<script>", "</script>", "<x/>", "</", "<!", "<?", "'", '"',
     "<a b='", "]]>", "<![CDATA[", "<g id='1'>", "</g>", "<rt>", "</ruby>", "<button>", "</button>", "<my-x>"]
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=25).map("".join))
@example("</>")
def test_the_pieces_of_a_document_join_to_the_document(source: str) -> None:
    units = list(read_html(source))
    assert (
        Part(source, [read_html]).write(Translated(unit.text) for unit in units if has_letters(unit.text)) == source
    )


def translated(page: str, translation: str, options: ReadOptions) -> str:
    document = read(page.encode(), options)
    return document.write(Translated(translation) for _ in document.units).decode()


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<img alt='eins' title=zwei src='nein'>", ["eins", "zwei"]),
        ('<input placeholder=eins value=nein><input type="SUBMIT" value="zwei">', ["eins", "zwei"]),
        ("<textarea placeholder=eins></textarea><video title=zwei><img alt=nein></video>", ["eins", "zwei"]),
        ("<meta name=Description content='eins'><meta property=og:title content=zwei>", ["eins", "zwei"]),
        ("<meta name=viewport content=nein><meta charset=nein>", []),
        ("<select label=nein><option label=eins></select><th abbr=zwei>", ["eins", "zwei"]),
        ("<div translate=no><img alt=nein></div><img alt=nein class=notranslate><p title='a &amp; b'>", ["a & b"]),
        ("<picture><img alt=eins></picture><pre><img alt=nein></pre>", ["eins"]),
        ("<script type='application/ld+json'>'<img alt=nein>'</script>", []),
        ("<a aria-label=eins data-title=nein download=nein href='title=nein'>", ["eins"]),
    ],
)  # fmt: skip
def test_the_translated_attributes_are_those_that_a_reader_reads_or_hears(source: str, texts: list[str]) -> None:
    assert [unit.text for unit in Part(source, [read_tags]).units] == texts


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("<img alt=x>", '<img alt="a &lt;b&gt; &quot;c&quot; d\'s &amp;">'),
        ("<img alt = ' x '>", "<img alt = ' a &lt;b&gt; \"c\" d&#39;s &amp; '>"),
        ('<IMG ALT="x"/>', '<IMG ALT="a &lt;b&gt; &quot;c&quot; d\'s &amp;"/>'),
    ],
)
def test_the_value_of_an_attribute_is_quoted_and_escaped(source: str, result: str) -> None:
    assert translated(source, 'a <b> "c" d\'s &', ReadOptions()) == result


@pytest.mark.parametrize(
    ("source", "target", "result"),
    [
        ('<html lang="de"><p lang="fr">x</p><i lang=de-AT>y</i>', "zh_Hant",
         '<html lang="zh-Hant"><p lang="fr">ja</p><i lang="zh-Hant">ja</i>'),
        ("<html xml:lang='de' lang='de' dir='ltr'>x", "ar", '<html xml:lang="ar" lang="ar" dir="rtl">ja'),
        ("<html lang=de><body dir=ltr>x", "he", '<html dir="rtl" lang="he"><body dir="rtl">ja'),
        ("<html lang=fa dir=rtl>x", "de", '<html lang="de" dir="ltr">ja'),
        ("<html><body>x", "en", "<html><body>ja"),
        ("<html lang=de>1</html>", "en", "<html lang=de>1</html>"),
    ],
)  # fmt: skip
def test_a_translated_page_names_its_language_and_direction(source: str, target: str, result: str) -> None:
    assert translated(source, "ja", ReadOptions(target=target)) == result


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="ISO-8859-1">', "cp1252"),
        ("<meta http-equiv=Content-Type content='text/html; charset=windows-1252'>", "cp1252"),
        ('<?xml version="1.0" encoding="iso-8859-15"?>', "iso-8859-15"),
        ("<meta charset=euc-kr>", "cp949"),
        ("<meta charset=utf-16>", "utf-8"),
        ("", "utf-8"),
        ("<meta charset=euc-kr>", "utf-8-sig"),
        ("", "utf-16"),
    ],
)
def test_the_encoding_is_the_declared_one_and_stays(head: str, encoding: str) -> None:
    texts = ["뒤", "앞"] if encoding in ("cp949", "utf-8", "utf-8-sig", "utf-16") else ["„é€", "ä"]
    if encoding == "iso-8859-15":
        texts = ["é€", "ä"]
    data = f"{head}<p>{texts[0]}</p>".encode(encoding)
    document = read(data, ReadOptions())
    assert [unit.text for unit in document.units] == texts[:1]
    assert document.write([Translated(texts[1])]) == f"{head}<p>{texts[1]}</p>".encode(encoding)


def test_a_letter_that_the_declared_encoding_lacks_is_written_as_a_reference() -> None:
    page = '<meta charset="iso-8859-1"><img alt="x"><p>é</p>'
    document = read(page.encode("latin1"), ReadOptions())
    written = document.write([Translated("앞"), Translated("뒤")])
    assert written == page.replace("x", "&#50526;").replace("é", "&#46244;").encode()


def test_xhtml_stays_well_formed_with_both_languages_beside_each_other() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml" lang="de"><p title="x">y<br/>z</p></html>'
    )
    document = read(page.encode(), ReadOptions(target="en"))
    written = document.write([Translated("<&\"'>")] * 3, bilingual=True).decode()
    assert "".join(ElementTree.fromstring(written).itertext()) == "y<&\"'>z<&\"'>"


@settings(max_examples=100)
@given(
    st.lists(
        PIECES | st.sampled_from(["<img alt='ja", "<html lang=de", " dir=rtl", " title=", "\0"]), max_size=25
    ).map("".join)
)
def test_any_page_whose_units_stay_is_written_as_it_was(source: str) -> None:
    document = read(source.encode(), ReadOptions(target="ar"))
    assert document.write(Translated(unit.text) for unit in document.units) == source.encode()


@pytest.mark.parametrize("part", ["<", "<a ", "<a b=", "<!--", "</", "<b>", "&", "<a b='x' ", "<a b='"])
def test_a_large_page_of_the_beginnings_of_tags_is_read_fast(part: str) -> None:
    start = time.process_time()
    for reader in (read_html, read_tags):
        list(reader(part * (100_000 // len(part))))
    assert time.process_time() - start < 20
