"""CTranslate2 gives what we give: every variant, every option it knows, and by itself too."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from tests.interop.parts import Parts, make_parts, sentences
from tests.model.samples import VARIANTS

from manyheads.data.batch import pad_rows
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import ParityError, RunError, UsageError
from manyheads.interop.ctranslate2 import convert
from manyheads.interop.ctranslate2.convert import check_ctranslate2, load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.ctranslate2.spec import build_spec, piece_names
from manyheads.interop.parity import Reference, Samples, decoder_input, random_samples, reference
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.beam import beam_search
from manyheads.search.greedy import greedy_search
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Sampling, SearchOptions
from manyheads.search.parameters import SearchParameters
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair

ctranslate2 = pytest.importorskip("ctranslate2")

GREEDY = SearchOptions(
    beam_size=1, length_penalty=1.0, max_length_ratio=2.0, max_length_offset=5, batch_tokens=4_096
)
BEAM = replace(GREEDY, beam_size=4, n_best=3)


def opened_engine(folder: Path, parts: Parts, **choices: Any) -> CTranslate2Engine:
    """The engine of a model, by way of the disk."""
    folder.mkdir(exist_ok=True)
    write_ctranslate2(folder, *parts)
    _, engine = load_ctranslate2(folder, **choices)
    return engine


def rows_of(parts: Parts, count: int = 13) -> list[list[int]]:
    return parts[1].source.encode(sentences(count, seed=5))


def limits(rows: list[list[int]], options: SearchOptions) -> torch.Tensor:
    return torch.tensor(options.longest(rows, 40))


def ours(parts: Parts, rows: list[list[int]], options: SearchOptions) -> list[list[Hypothesis]]:
    """Our own search, row by row."""
    found = []
    for row in rows:
        stepper = EncoderDecoderStepper(parts[2], torch.tensor([[*row, EOS]]))
        common: dict[str, Any] = {
            "max_lengths": limits([row], options),
            "bos": BOS,
            "eos": EOS,
            "suppressed": (PAD, BOS),
        }
        if options.beam_size == 1:
            found.append(greedy_search(stepper, SearchParameters(length_penalty=options.length_penalty, **common)))
        else:
            found += beam_search(
                stepper,
                SearchParameters(
                    beam_size=options.beam_size,
                    n_best=options.n_best,
                    length_penalty=options.length_penalty,
                    **common,
                ),
            )
    return found


def assert_scored(parts: Parts, row: list[int], one: Hypothesis, length_penalty: float = 1.0) -> None:
    """What a hypothesis says of itself is what our model says with the whole output given."""
    tokens = [*one.tokens, EOS] if one.ended else list(one.tokens)
    logits = parts[2](torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *tokens][: len(tokens)]]))[0]
    logits[:, [PAD, BOS]] = -torch.inf
    right = logits.log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)].tolist()
    assert list(one.token_scores) == pytest.approx(right, abs=1e-4)
    assert one.log_probability == pytest.approx(sum(right), abs=1e-3)
    assert one.score == pytest.approx(sum(right) / len(right) ** length_penalty, abs=1e-3)


def assert_rounding_alone(folder: Path, parts: Parts, right: Reference) -> None:
    """No score is further from that of float64 than the rounding of float32 in such a model explains.

    Our own scores show how much that is: how long its sums are, and how much its layers amplify. Another order of
    summation gives up to 1.7 times as much (AVX-512, AVX2 and SSE); four times is allowed. An epsilon of the norms
    that is ten times too large gives 16 times as much, and more.
    """
    exact = reference_scores(deepcopy(parts[2]).double(), right)
    scores = load_ctranslate2(folder)[1].score(right.samples.rows, right.outputs)
    assert largest_gap(scores, exact) <= 4 * largest_gap(right.scores, exact)


@torch.inference_mode()
def reference_scores(model: EncoderDecoder, right: Reference) -> list[list[float]]:
    """What a model gives the outputs of another, in its own number type."""
    logits = model(pad_rows(right.samples.rows, PAD, last=EOS), decoder_input(right.outputs))
    logits[..., [PAD, BOS]] = -torch.inf
    return [
        row[torch.arange(len(output) + 1), torch.tensor([*output, EOS])].tolist()
        for row, output in zip(logits.log_softmax(-1), right.outputs, strict=True)
    ]


def largest_gap(some: list[list[float]], others: list[list[float]]) -> float:
    return max(abs(a - b) for row, other in zip(some, others, strict=True) for a, b in zip(row, other, strict=True))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_scores_and_writes_as_ours(tmp_path: Path, variant: str) -> None:
    tokenizer = {} if VARIANTS[variant]["tied_embeddings"] == "all" else {"joint": False, "vocab_size": 40}
    parts = make_parts(tokenizer=tokenizer, **VARIANTS[variant])
    write_ctranslate2(tmp_path, *parts)
    right = reference(parts[2], Samples(rows_of(parts), ""))
    assert_rounding_alone(tmp_path, parts, right)
    parity = check_ctranslate2(tmp_path, right)
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
def test_what_other_models_bring_in_is_theirs_too(tmp_path: Path, changes: dict[str, Any]) -> None:
    parts = make_parts(**changes)
    write_ctranslate2(tmp_path, *parts)
    assert_rounding_alone(tmp_path, parts, reference(parts[2], Samples(rows_of(parts), "")))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_wrong_epsilon_is_more_than_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    tokenizer = {} if VARIANTS[variant]["tied_embeddings"] == "all" else {"joint": False, "vocab_size": 40}
    parts = make_parts(tokenizer=tokenizer, **VARIANTS[variant])

    def wrong(model: EncoderDecoder, tokenizers: TokenizerPair) -> Any:
        spec = build_spec(model, tokenizers)
        spec.config.layer_norm_epsilon *= 10
        return spec

    monkeypatch.setattr(convert, "build_spec", wrong)
    write_ctranslate2(tmp_path, *parts)
    with pytest.raises(AssertionError):
        assert_rounding_alone(tmp_path, parts, reference(parts[2], Samples(rows_of(parts), "")))


@pytest.mark.parametrize("kind", ["words", "characters", "bytes", "unigram"])
def test_every_kind_of_tokenizer(tmp_path: Path, kind: str) -> None:
    """Among the characters are a blank and its sign, whose readable pieces are the same."""
    if kind == "words":
        pytest.importorskip("spacy")
    parts = make_parts(tokenizer={"kind": kind})
    names = piece_names(parts[1].source)
    assert len(set(names)) == len(names) == parts[1].source.size
    engine = opened_engine(tmp_path / "x", parts)
    rows = rows_of(parts, 5)
    assert [one[0].tokens for one in engine.search(rows, GREEDY)] == [
        one[0].tokens for one in ours(parts, rows, GREEDY)
    ]


@pytest.mark.parametrize("penalty", [0.0, 1.0, 0.6])
def test_greedy_outputs_their_scores_and_their_cuts_are_ours(tmp_path: Path, penalty: float) -> None:
    """Some of the outputs would go on beyond their limits, which differ."""
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts), rows_of(parts)
    options = replace(GREEDY, length_penalty=penalty, max_length_ratio=0.5, max_length_offset=3)
    found, right = engine.search(rows, options), ours(parts, rows, options)
    assert [one[0].tokens for one in found] == [one[0].tokens for one in right]
    assert [one[0].ended for one in found] == [one[0].ended for one in right]
    assert {one[0].ended for one in right} == {True, False}
    for row, (one,) in zip(rows, found, strict=True):
        assert_scored(parts, row, one, penalty)


def test_an_output_of_no_token_has_a_score(tmp_path: Path) -> None:
    parts = make_parts(end_bias=30.0)
    (found,) = opened_engine(tmp_path / "x", parts).search(rows_of(parts, 1), GREEDY)
    assert found[0].tokens == ()
    assert found[0].ended
    assert_scored(parts, rows_of(parts, 1)[0], found[0])


def test_a_beam_finds_outputs_as_good_as_ours_and_scores_each_rightly(tmp_path: Path) -> None:
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts), rows_of(parts)
    found, right = engine.search(rows, BEAM), ours(parts, rows, BEAM)
    assert sorted({len(outputs) for outputs in found})[-1] == 3
    assert all(
        [one.score for one in outputs] == sorted((one.score for one in outputs), reverse=True) for outputs in found
    )
    for row, outputs in zip(rows, found, strict=True):
        assert 1 <= len({one.tokens for one in outputs}) == len(outputs)
        for one in outputs:
            assert_scored(parts, row, one)
    same = sum(one[0].tokens == other[0].tokens for one, other in zip(found, right, strict=True))
    assert same >= len(rows) - 2  # it stops by a rule of its own


def test_without_token_scores_the_sum_is_still_known(tmp_path: Path) -> None:
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts), rows_of(parts)
    for options in (GREEDY, BEAM, replace(BEAM, length_penalty=0.3)):
        full, bare = engine.search(rows, options), engine.search(rows, replace(options, token_scores=False))
        assert any(not one[0].token_scores for one in bare)
        for one, other in zip((h for row in full for h in row), (h for row in bare for h in row), strict=True):
            assert not other.token_scores or other.token_scores == pytest.approx(one.token_scores, abs=1e-4)
            assert other.log_probability == pytest.approx(one.log_probability, abs=1e-3)
            assert other.score == pytest.approx(one.score, abs=1e-3)


def test_results_do_not_depend_on_the_rows_beside(tmp_path: Path) -> None:
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts, workers=2), rows_of(parts)
    for options in (replace(GREEDY, max_length_ratio=0.6), BEAM):
        together = engine.search(rows, options)
        alone = [engine.search([row], options)[0] for row in rows]
        assert [[one.tokens for one in row] for row in together] == [[one.tokens for one in row] for row in alone]


def test_prefixes_forbidden_words_and_lengths_are_kept(tmp_path: Path) -> None:
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts), rows_of(parts)
    plain = [row[0].tokens for row in engine.search(rows, GREEDY)]
    prefix = tuple((9, 11) if i % 2 else () for i in range(len(rows)))
    for options in (GREEDY, BEAM):
        for row, start, outputs in zip(
            rows, prefix, engine.search(rows, replace(options, prefixes=prefix)), strict=True
        ):
            for one in outputs:
                assert one.tokens[: len(start)] == start
                assert_scored(parts, row, one)
    common = max({t for row in plain for t in row}, key=lambda t: sum(t in row for row in plain))
    forbidden = (((common,),),) * len(rows)
    for outputs in engine.search(rows, replace(BEAM, forbidden=forbidden)):
        assert all(common not in one.tokens for one in outputs)
    for row, outputs in zip(rows, engine.search(rows, replace(BEAM, min_length_ratio=1.0)), strict=True):
        assert all(len(one.tokens) >= len(row) for one in outputs if one.ended)
    for outputs in engine.search(rows, replace(BEAM, no_repeat_ngram=1)):
        assert all(len(set(one.tokens)) == len(one.tokens) for one in outputs)


def test_attention_is_that_of_the_last_layer_and_adds_up_to_one(tmp_path: Path) -> None:
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts), rows_of(parts, 4)
    seen: list[torch.Tensor] = []
    attention = parts[2].decoder_layers[-1].cross_attention

    def look(module: Any, query: torch.Tensor, key: torch.Tensor, value: Any, mask: Any) -> None:
        scores = query @ key.transpose(-1, -2) / query.size(-1) ** 0.5
        seen.append(scores.softmax(-1).mean(1)[0])

    for row, (one,) in zip(rows, engine.search(rows, replace(GREEDY, alignment=True)), strict=True):
        attention.observer = look
        parts[2](torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *one.tokens]]))
        attention.observer = None
        right = seen.pop()[: len(one.token_scores)]
        assert one.attention is not None
        torch.testing.assert_close(torch.tensor(one.attention), right, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (replace(GREEDY, sampling=Sampling()), "sampling"),
        (replace(BEAM, diverse_groups=2), "diverse_groups"),
        (replace(BEAM, coverage_penalty=0.2), "coverage_penalty"),
        (replace(BEAM, rivals=2), "rivals"),
        (replace(BEAM, required=(((5,),),)), "required"),
        (replace(BEAM, alignment=True, attention_layer=0), "attention_layer"),
        (replace(BEAM, alignment=True, prefixes=((5,),)), "prefixes"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(tmp_path: Path, options: SearchOptions, name: str) -> None:
    engine = opened_engine(tmp_path / "x", make_parts())
    with pytest.raises(UsageError, match=rf"--engine ctranslate2 cannot do: {name}"):
        engine.search([[5]], options)


def test_a_stream_gives_the_greedy_output(tmp_path: Path) -> None:
    parts = make_parts()
    engine, rows = opened_engine(tmp_path / "x", parts), rows_of(parts)
    options = replace(GREEDY, max_length_ratio=0.5)
    for row, (one,) in zip(rows, engine.search(rows, options), strict=True):
        assert tuple(engine.stream(row, options)) == one.tokens
    (prefixed,) = (engine.stream(rows[0], replace(options, prefixes=((9, 11),))),)
    assert tuple(prefixed)[:2] == (9, 11)


# --- the folder ---


def test_the_folder_is_a_model_for_plain_ctranslate2_and_sentencepiece(tmp_path: Path) -> None:
    """As anybody would write it who knows nothing of us."""
    parts = make_parts()
    write_ctranslate2(tmp_path, *parts)
    texts = sentences(8, seed=5)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.source.model"))
    translator = ctranslate2.Translator(str(tmp_path))
    found = translator.translate_batch(pieces.encode(texts, out_type=str), beam_size=1, max_decoding_length=39)
    plain = [pieces.decode(one.hypotheses[0]) for one in found]
    rows = parts[1].source.encode(texts)
    long = replace(GREEDY, max_length_ratio=0.0, max_length_offset=39)
    right = [parts[1].target.decode(row[0].tokens) for row in ours(parts, rows, long)]
    assert plain == right
    assert len(set(right)) > 4


@pytest.mark.parametrize("numbers", ["int8", "int8_float32", "bfloat16", "float16", "int16"])
def test_smaller_numbers_stay_near(tmp_path: Path, numbers: str) -> None:
    """What is stored, computed in float32: the same on every processor."""
    parts = make_parts()
    write_ctranslate2(tmp_path, *parts, quantization=numbers)
    parity = check_ctranslate2(tmp_path, reference(parts[2], Samples(rows_of(parts), "")))
    assert 0 < parity.mean < 0.2
    plain = tmp_path / "plain"
    plain.mkdir()
    write_ctranslate2(plain, *parts)
    assert (tmp_path / "model.bin").stat().st_size < 0.75 * (plain / "model.bin").stat().st_size


def test_an_export_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    """The library quantises in place."""
    parts = make_parts()
    before = [parameter.clone() for parameter in parts[2].parameters()]
    write_ctranslate2(tmp_path, *parts, quantization="int8")
    assert all(torch.equal(one, other) for one, other in zip(before, parts[2].parameters(), strict=True))


def test_token_types_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot be this one: model\.token_types = 2"):
        write_ctranslate2(tmp_path, *make_parts(token_types=2))


def test_another_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--quantization int4 is none of float32, int8"):
        write_ctranslate2(tmp_path, *make_parts(), quantization="int4")


@pytest.mark.parametrize("fault", ["weights", "positions", "scale"])
def test_an_export_that_gives_something_else_is_told(tmp_path: Path, fault: str) -> None:
    """The parity check sees the faults of a converter: here the model changes after it was written."""
    parts = make_parts()
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


def test_a_folder_that_was_changed_is_refused(tmp_path: Path) -> None:
    parts = make_parts()
    write_ctranslate2(tmp_path, *parts)
    data = bytearray((tmp_path / "model.bin").read_bytes())
    data[-100] ^= 1
    (tmp_path / "model.bin").write_bytes(data)
    with pytest.raises(RunError, match=r"model\.bin is damaged: its checksum does not fit"):
        load_ctranslate2(tmp_path)


def test_a_model_that_the_library_cannot_read_is_told(tmp_path: Path) -> None:
    parts = make_parts()
    write_ctranslate2(tmp_path, *parts)
    _, engine = load_ctranslate2(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"\0" * 30)
    with pytest.raises(RunError, match="CTranslate2 cannot open"):
        engine.search([[5]], GREEDY)


def test_workers_and_threads_are_chosen_or_as_given(tmp_path: Path) -> None:
    parts = make_parts()
    cores = torch.get_num_threads()
    engine = opened_engine(tmp_path / "x", parts)
    assert (engine.many, engine.single) == ((cores, 1), (1, cores))
    assert opened_engine(tmp_path / "x", parts, threads=1, workers=3).many == (3, 1)
    write_ctranslate2(tmp_path / "x", *parts, quantization="int8")
    _, small = load_ctranslate2(tmp_path / "x")
    assert small.single == (cores, 1)


def test_long_sources_have_positions(tmp_path: Path) -> None:
    """1,024 positions at least, whatever the run was trained with: the table is computed."""
    parts = make_parts(positions="sinusoidal", max_positions=41)
    spec = build_spec(parts[2], parts[1])
    assert spec.encoder.position_encodings.encodings.shape == (1024, 30)


def test_an_imported_model_and_its_pieces_go_too(tmp_path: Path) -> None:
    """Theirs, ours and CTranslate2: the pieces that their list lacks are unknown to all."""
    pytest.importorskip("transformers")
    from tests.interop.marian import write_marian_folder

    from manyheads.interop.marian.reader import read_marian

    write_marian_folder(tmp_path / "theirs", shared=False, tie_word_embeddings=False)
    opened = read_marian(tmp_path / "theirs")
    parts: Parts = (opened.config, opened.tokenizers, opened.model)
    engine = opened_engine(tmp_path / "out", parts)
    texts = sentences(9, seed=5)
    rows = opened.tokenizers.source.encode(texts)
    assert [one[0].tokens for one in engine.search(rows, GREEDY)] == [
        one[0].tokens for one in ours(parts, rows, GREEDY)
    ]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "source.spm"))
    plain = ctranslate2.Translator(str(tmp_path / "out")).translate_batch(
        pieces.encode(texts, out_type=str), beam_size=1, max_decoding_length=20, min_decoding_length=0
    )
    long = replace(GREEDY, max_length_ratio=0.0, max_length_offset=20)
    assert [tuple(engine.ids[name] for name in one.hypotheses[0]) for one in plain] == [
        one[0].tokens for one in ours(parts, rows, long)
    ]
