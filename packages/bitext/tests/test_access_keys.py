"""Access keys are removed in the forms of all toolkits, and signs of names, addresses and text stay."""

from __future__ import annotations

import pytest

from bitext.access_keys import without_access_keys


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("_Cancel", "취소(_C)"), ("Cancel", "취소")),
        (("_Cancel", "취소"), ("Cancel", "취소")),
        (("Select Font", "글꼴 선택(_L)"), ("Select Font", "글꼴 선택")),
        (("&File", "파일 (&F)"), ("File", "파일")),
        (("&Open...", "開く（&O）..."), ("Open...", "開く...")),
        (("_Name:", "이름(_N):"), ("Name:", "이름:")),
        (("~Edit", "Bearb~eiten"), ("Edit", "Bearbeiten")),
        (("E&xit", "Be&enden"), ("Exit", "Beenden")),
        (("C_onnect", "_Verbinden"), ("Connect", "Verbinden")),
        (("_OK", "_OK"), ("OK", "OK")),
        (("Connect to _Server", "Mit _Server verbinden"), ("Connect to Server", "Mit Server verbinden")),
        (("_Copy && Paste", "Kopieren && ein_fügen"), ("Copy && Paste", "Kopieren && einfügen")),
        (("&Copy && Paste", "복사 && 붙여넣기(&C)"), ("Copy & Paste", "복사 & 붙여넣기")),
        (("&Yes\n&No", "예(&Y)\n아니오(&N)"), ("Yes\nNo", "예\n아니오")),
        (("_Файл", "_File"), ("Файл", "File")),
    ],
)
def test_access_keys_are_removed(pair: tuple[str, str], expected: tuple[str, str]) -> None:
    assert without_access_keys(*pair) == expected
    assert without_access_keys(*pair[::-1]) == expected[::-1]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Set file_name", "file_name 설정"),
        ("existing_collation", "existierende_Sortierfolge"),
        ("where role_specification can be:", "롤_명세 사용법:"),
        ("KP_Enter", "Eingabe (Nmblck)"),
        ("AT&T", "AT&T"),
        ("R&D", "F&E"),
        ("R&D", "연구개발"),
        ("Tom &amp; Jerry", "Tom &amp; Jerry"),
        ("x &lt; y", "x는 y보다 작습니다"),
        ("a & b", "a und b"),
        ("https://a.de/?x=1&y=2", "siehe https://a.de/?x=1&y=2"),
        ("__NAME__", "_NAME_"),
        ("an _important_ word", "ein _wichtiges_ Wort"),
        ("How to ski", "~하는 방법"),
        ("usage of +N or ~N as first address", "+N oder ~N als erste Adresse"),
        ("Cannot read $switch_to", "$switch_to를 읽을 수 없습니다"),
        ("_id", "_id"),
        ("a && b", "a && b"),
        ("", "_"),
    ],
)
def test_other_signs_stay(source: str, target: str) -> None:
    assert without_access_keys(source, target) == (source, target)
    assert without_access_keys(target, source) == (target, source)
