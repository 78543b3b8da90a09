"""CTranslate2 gives the results of manyheads for every variant and option that it supports, also by itself."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from tests.interop.parts import Parts, make_parts, sentences, variant_parts
from tests.model.samples import VARIANTS
from tests.tolerances import approx

from manyheads.decoding.beam import beam_search
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import ParityError, RunError, UsageError
from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.parity import Reference, Samples, random_samples
from manyheads.interop.ctranslate2 import convert
from manyheads.interop.ctranslate2.convert import check_ctranslate2, load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.spec import build_spec, piece_names
from manyheads.interop.reference import decoder_input, reference
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.interface import Hypothesis
from manyheads.search.options import UNCONSTRAINED, Constraints, Sampling, SearchOptions
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair

ctranslate2 = pytest.importorskip("ctranslate2")

GREEDY = SearchOptions(
    beam_size=1, length_penalty=1.0, max_length_ratio=2.0, max_length_offset=5, batch_tokens=4_096
)
BEAM = replace(GREEDY, beam_size=4, n_best=3)


def make_engine(folder: Path, parts: Parts) -> CTranslate2Engine:
    """Write a model to disk and return its engine."""
    folder.mkdir(exist_ok=True)
    write_ctranslate2(folder, *parts)
    _, engine = load_ctranslate2(folder)
    return engine


@pytest.fixture
def parts() -> Parts:
    return make_parts()


@pytest.fixture
def engine(parts: Parts, tmp_path: Path) -> CTranslate2Engine:
    return make_engine(tmp_path, parts)


def rows_of(parts: Parts, count: int = 13) -> list[list[int]]:
    return parts[1].source.encode(sentences(count, seed=5))


def limits(rows: list[list[int]], options: SearchOptions) -> torch.Tensor:
    return torch.tensor(options.longest(rows, 40))


def reference_search(parts: Parts, rows: list[list[int]], options: SearchOptions) -> list[list[Hypothesis]]:
    """Search with manyheads itself, row by row."""
    found = []
    for row in rows:
        stepper = EncoderDecoderStepper(parts[2], torch.tensor([[*row, EOS]]))
        if options.beam_size == 1:
            found.append(greedy_search(stepper, options, limits([row], options), SPECIAL_IDS))
        else:
            found += beam_search(stepper, options, limits([row], options), SPECIAL_IDS)
    return found


def best_outputs(found: list[list[Hypothesis]]) -> list[tuple[int, ...]]:
    return [outputs[0].tokens for outputs in found]


def assert_scores_match(parts: Parts, row: list[int], hypothesis: Hypothesis, length_penalty: float = 1.0) -> None:
    """Check the scores of a hypothesis against a teacher-forced pass of the model."""
    tokens = [*hypothesis.tokens, EOS] if hypothesis.ended else list(hypothesis.tokens)
    logits = parts[2](torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *tokens][: len(tokens)]]))[0]
    logits[:, [PAD, BOS]] = -torch.inf
    expected = logits.log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)].tolist()
    assert list(hypothesis.token_scores) == approx(expected)
    assert hypothesis.log_probability == approx(sum(expected))
    assert hypothesis.score == approx(sum(expected) / len(expected) ** length_penalty)


def assert_rounding_alone(folder: Path, parts: Parts, expected: Reference) -> None:
    """Check that scores differ from those in float64 by no more than the rounding of float32 explains.

    The scores of manyheads in float32 show the size of the rounding in this model. Another order of summation
    gives up to 1.7 times as much (AVX-512, AVX2 and SSE); four times is allowed. An epsilon of the norms that is
    ten times too large gives 16 times as much, and more.
    """
    exact = reference_scores(deepcopy(parts[2]).double(), expected)
    scores = load_ctranslate2(folder)[1].score(expected.samples.rows, expected.outputs)
    assert max_difference(scores, exact) <= 4 * max_difference(expected.scores, exact)


@torch.inference_mode()
def reference_scores(model: EncoderDecoder, expected: Reference) -> list[list[float]]:
    """Return the token scores that a model gives to the outputs of a reference, in the number type of the model."""
    logits = model(pad_rows(expected.samples.rows, PAD, last=EOS), decoder_input(expected.outputs))
    logits[..., [PAD, BOS]] = -torch.inf
    return [
        row[torch.arange(len(output) + 1), torch.tensor([*output, EOS])].tolist()
        for row, output in zip(logits.log_softmax(-1), expected.outputs, strict=True)
    ]


def max_difference(first: list[list[float]], second: list[list[float]]) -> float:
    return max(
        abs(a - b) for row, other in zip(first, second, strict=True) for a, b in zip(row, other, strict=True)
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_the_scores_and_outputs_of_manyheads(tmp_path: Path, variant: str) -> None:
    parts = variant_parts(variant)
    write_ctranslate2(tmp_path, *parts)
    expected = reference(parts[2], Samples(rows_of(parts), ""))
    assert_rounding_alone(tmp_path, parts, expected)
    parity = check_ctranslate2(tmp_path, expected)
    assert parity.same_outputs == parity.sentences == 13
    assert parity.tokens > 50


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "post", "activation": "swish"},
        {"activation": "gelu-tanh", "embedding_norm": True},
        {"positions": "rotary", "embedding_norm": True},
    ],
    ids=["swish", "gelu-tanh", "rotary, normed embeddings"],
)
def test_options_of_imported_models_are_exported(tmp_path: Path, changes: dict[str, Any]) -> None:
    parts = make_parts(**changes)
    write_ctranslate2(tmp_path, *parts)
    assert_rounding_alone(tmp_path, parts, reference(parts[2], Samples(rows_of(parts), "")))


@pytest.mark.parametrize("variant", ["pre-sinusoidal-relu-all", "post-learned-relu-none"])
def test_a_wrong_epsilon_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    parts = variant_parts(variant)

    def build_wrong_spec(model: EncoderDecoder, tokenizers: TokenizerPair) -> Any:
        spec = build_spec(model, tokenizers)
        spec.config.layer_norm_epsilon *= 10
        return spec

    monkeypatch.setattr(convert, "build_spec", build_wrong_spec)
    write_ctranslate2(tmp_path, *parts)
    with pytest.raises(AssertionError):
        assert_rounding_alone(tmp_path, parts, reference(parts[2], Samples(rows_of(parts), "")))


@pytest.mark.parametrize("kind", ["words", "characters", "bytes", "unigram"])
def test_every_kind_of_tokenizer_is_exported(tmp_path: Path, kind: str) -> None:
    """The character tokenizer has a blank and its sign ▁, whose readable pieces are the same."""
    if kind == "words":
        pytest.importorskip("spacy")
    parts = make_parts(tokenizer={"kind": kind})
    names = piece_names(parts[1].source)
    assert len(set(names)) == len(names) == parts[1].source.size
    rows = rows_of(parts, 5)
    found = make_engine(tmp_path, parts).search(rows, GREEDY)
    assert best_outputs(found) == best_outputs(reference_search(parts, rows, GREEDY))


@pytest.mark.parametrize("penalty", [0.0, 1.0, 0.6])
def test_greedy_outputs_scores_and_truncations_are_those_of_manyheads(
    parts: Parts, engine: CTranslate2Engine, penalty: float
) -> None:
    """Some outputs reach their length limits, which differ."""
    rows = rows_of(parts)
    options = replace(GREEDY, length_penalty=penalty, max_length_ratio=0.5, max_length_offset=3)
    found, expected = engine.search(rows, options), reference_search(parts, rows, options)
    assert best_outputs(found) == best_outputs(expected)
    assert [outputs[0].ended for outputs in found] == [outputs[0].ended for outputs in expected]
    assert {outputs[0].ended for outputs in expected} == {True, False}
    for row, (hypothesis,) in zip(rows, found, strict=True):
        assert_scores_match(parts, row, hypothesis, penalty)


def test_an_empty_output_has_a_score(tmp_path: Path) -> None:
    parts = make_parts(end_bias=30.0)
    (found,) = make_engine(tmp_path / "x", parts).search(rows_of(parts, 1), GREEDY)
    assert found[0].tokens == ()
    assert found[0].ended
    assert_scores_match(parts, rows_of(parts, 1)[0], found[0])


def test_beam_search_finds_mostly_the_same_best_outputs_with_correct_scores(
    parts: Parts, engine: CTranslate2Engine
) -> None:
    rows = rows_of(parts)
    found, expected = engine.search(rows, BEAM), reference_search(parts, rows, BEAM)
    assert sorted({len(outputs) for outputs in found})[-1] == 3
    assert all(
        [hypothesis.score for hypothesis in outputs]
        == sorted((hypothesis.score for hypothesis in outputs), reverse=True)
        for outputs in found
    )
    for row, outputs in zip(rows, found, strict=True):
        assert 1 <= len({hypothesis.tokens for hypothesis in outputs}) == len(outputs)
        for hypothesis in outputs:
            assert_scores_match(parts, row, hypothesis)
    same = sum(outputs[0].tokens == others[0].tokens for outputs, others in zip(found, expected, strict=True))
    assert same >= len(rows) - 2  # CTranslate2 stops by another rule


def test_scores_are_the_same_without_token_scores(parts: Parts, engine: CTranslate2Engine) -> None:
    rows = rows_of(parts)
    for options in (GREEDY, BEAM, replace(BEAM, length_penalty=0.3)):
        full, bare = engine.search(rows, options), engine.search(rows, replace(options, token_scores=False))
        assert any(not outputs[0].token_scores for outputs in bare)
        for hypothesis, other in zip(
            (h for row in full for h in row), (h for row in bare for h in row), strict=True
        ):
            assert not other.token_scores or other.token_scores == approx(hypothesis.token_scores)
            assert other.log_probability == approx(hypothesis.log_probability)
            assert other.score == approx(hypothesis.score)


def test_prefixes_lengths_and_no_repetition_are_obeyed(parts: Parts, engine: CTranslate2Engine) -> None:
    rows = rows_of(parts)
    prefixed = [Constraints((9, 11) if i % 2 else ()) for i in range(len(rows))]
    for options in (GREEDY, BEAM):
        for row, constraints, outputs in zip(rows, prefixed, engine.search(rows, options, prefixed), strict=True):
            for hypothesis in outputs:
                assert hypothesis.tokens[: len(constraints.prefix)] == constraints.prefix
                assert_scores_match(parts, row, hypothesis)
    for row, outputs in zip(rows, engine.search(rows, replace(BEAM, min_length_ratio=1.0)), strict=True):
        assert all(len(hypothesis.tokens) >= len(row) for hypothesis in outputs if hypothesis.ended)
    for outputs in engine.search(rows, replace(BEAM, no_repeat_ngram=1)):
        assert all(len(set(hypothesis.tokens)) == len(hypothesis.tokens) for hypothesis in outputs)


@pytest.mark.parametrize(
    ("options", "constraints"),
    [
        (replace(GREEDY, sampling=Sampling()), UNCONSTRAINED),
        (replace(BEAM, alternatives=2), UNCONSTRAINED),
        (replace(BEAM, alignment=True), UNCONSTRAINED),
        (BEAM, Constraints(required=((5,),))),
        (BEAM, Constraints(forbidden=((5,),))),
    ],
)
def test_what_is_not_compared_is_refused(
    engine: CTranslate2Engine, options: SearchOptions, constraints: Constraints
) -> None:
    with pytest.raises(UsageError, match="greedy and beam search alone"):
        engine.search([[5]], options, [constraints])


# --- the folder ---


def test_the_folder_is_usable_with_ctranslate2_and_sentencepiece_alone(parts: Parts, tmp_path: Path) -> None:
    """The calls are those of a user of both libraries without manyheads."""
    write_ctranslate2(tmp_path, *parts)
    texts = sentences(8, seed=5)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.source.model"))
    translator = ctranslate2.Translator(str(tmp_path))
    found = translator.translate_batch(pieces.encode(texts, out_type=str), beam_size=1, max_decoding_length=39)
    plain = [pieces.decode(result.hypotheses[0]) for result in found]
    rows = parts[1].source.encode(texts)
    long = replace(GREEDY, max_length_ratio=0.0, max_length_offset=39)
    expected = [parts[1].target.decode(row) for row in best_outputs(reference_search(parts, rows, long))]
    assert plain == expected
    assert len(set(expected)) > 4


@pytest.mark.parametrize("numbers", ["int8", "int8_float32", "bfloat16", "float16", "int16"])
def test_scores_of_quantized_models_are_near(parts: Parts, tmp_path: Path, numbers: str) -> None:
    """The stored weights are computed with in float32, with equal results on every processor."""
    write_ctranslate2(tmp_path, *parts, quantization=numbers)
    parity = check_ctranslate2(tmp_path, reference(parts[2], Samples(rows_of(parts), "")))
    assert 0 < parity.mean < 0.2
    plain = tmp_path / "plain"
    plain.mkdir()
    write_ctranslate2(plain, *parts)
    assert (tmp_path / "model.bin").stat().st_size < 0.75 * (plain / "model.bin").stat().st_size


def test_an_export_does_not_modify_the_model(parts: Parts, tmp_path: Path) -> None:
    """The library quantizes in place."""
    before = [parameter.clone() for parameter in parts[2].parameters()]
    write_ctranslate2(tmp_path, *parts, quantization="int8")
    assert all(torch.equal(old, new) for old, new in zip(before, parts[2].parameters(), strict=True))


def test_token_types_and_an_unknown_quantization_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot be this one: model\.token_types = 2"):
        write_ctranslate2(tmp_path, *make_parts(token_types=2))
    with pytest.raises(UsageError, match="--quantization int4 is none of float32, int8"):
        write_ctranslate2(tmp_path, *make_parts(), quantization="int4")


@pytest.mark.parametrize("fault", ["weights", "positions", "scale"])
def test_an_export_with_other_results_is_an_error(parts: Parts, tmp_path: Path, fault: str) -> None:
    """The model is changed after the export, in place of an error of the converter."""
    write_ctranslate2(tmp_path, *parts)
    model = parts[2]
    with torch.no_grad():
        if fault == "weights":
            model.decoder_layers[1].cross_attention.project_in.weight[:30].neg_()
        elif fault == "positions":
            model.source_embedding.positions.table.copy_(model.source_embedding.positions.table.roll(1, 0))  # type: ignore[union-attr, operator]
        else:
            model.target_embedding.scale *= 1.1
    with pytest.raises(ParityError, match="does not give what the run gives, and was not kept"):
        check_ctranslate2(tmp_path, reference(model, random_samples(parts[1].source)))


def test_a_modified_folder_is_refused(parts: Parts, tmp_path: Path) -> None:
    write_ctranslate2(tmp_path, *parts)
    data = bytearray((tmp_path / "model.bin").read_bytes())
    data[-100] ^= 1
    (tmp_path / "model.bin").write_bytes(data)
    with pytest.raises(RunError, match=r"model\.bin is damaged: its checksum does not fit"):
        load_ctranslate2(tmp_path)


def test_a_model_that_the_library_cannot_read_is_an_error(engine: CTranslate2Engine, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"\0" * 30)
    with pytest.raises(RunError, match="CTranslate2 cannot open"):
        engine.search([[5]], GREEDY)


def test_exported_models_have_at_least_1024_positions(tmp_path: Path) -> None:
    """The sinusoidal table is computed, whatever length the run was trained with."""
    parts = make_parts(positions="sinusoidal", max_positions=41)
    spec = build_spec(parts[2], parts[1])
    assert spec.encoder.position_encodings.encodings.shape == (1024, 30)


@pytest.mark.parametrize("separate", [False, True])
def test_an_imported_model_is_exported_with_its_pieces(tmp_path: Path, separate: bool) -> None:
    """Pieces that are missing in the imported vocabulary are unknown to manyheads and CTranslate2 alike."""
    pytest.importorskip("transformers")
    from tests.interop.marian import write_marian_folder

    from manyheads.interop.marian.reader import read_marian

    write_marian_folder(tmp_path / "theirs", shared=False, separate=separate, tie_word_embeddings=False)
    opened = read_marian(tmp_path / "theirs")
    parts: Parts = (opened.config, opened.tokenizers, opened.model)
    engine = make_engine(tmp_path / "out", parts)
    texts = sentences(9, seed=5)
    rows = opened.tokenizers.source.encode(texts)
    expected = best_outputs(reference_search(parts, rows, GREEDY))
    assert best_outputs(engine.search(rows, GREEDY)) == expected
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "source.spm"))
    plain = ctranslate2.Translator(str(tmp_path / "out")).translate_batch(
        pieces.encode(texts, out_type=str), beam_size=1, max_decoding_length=20, min_decoding_length=0
    )
    long = replace(GREEDY, max_length_ratio=0.0, max_length_offset=20)
    found = [tuple(engine.ids[name] for name in result.hypotheses[0]) for result in plain]
    assert found == best_outputs(reference_search(parts, rows, long))
