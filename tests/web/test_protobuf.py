from __future__ import annotations

import io

import sentencepiece
from tests.interop.parts import sentences

from manyheads.web.protobuf import read_fields


def test_fields_of_a_sentencepiece_model_are_those_that_the_library_reads() -> None:
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(200)), model_writer=stream, vocab_size=30, minloglevel=2, num_threads=1
    )
    model = stream.getvalue()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [read_fields(piece) for piece in read_fields(model)[1]]
    assert [piece[1][0].decode() for piece in pieces] == [processor.id_to_piece(i) for i in range(30)]
    assert [piece[2][0] for piece in pieces] == [processor.get_score(i) for i in range(30)]


def test_each_type_of_field_is_read() -> None:
    integer, double = b"\x08\xac\x02", b"\x11" + bytes(6) + b"\xf8\x3f"
    text, single = b"\x1a\x02hi", b"\x25\0\0\xc0\x3f"
    assert read_fields(integer + double + text + single) == {1: [300], 2: [1.5], 3: [b"hi"], 4: [1.5]}
    assert read_fields(text * 2) == {3: [b"hi", b"hi"]}
    assert read_fields(b"\xc2\x02\x01x") == {40: [b"x"]}
