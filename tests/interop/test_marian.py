"""Import and export of MarianMT: the ids, logits and texts are those of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.interop.marian import write_marian_folder
from tests.interop.parts import Parts, change_settings, make_parts, sentences
from tests.tolerances import assert_close

from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import ParityError, RunError
from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.parity import Samples, random_samples
from manyheads.interop.marian.reader import check_marian, read_marian, their_numbers
from manyheads.interop.marian.writer import marian_numbers, starts_from_zero, write_marian
from manyheads.interop.reference import reference
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, EOS, PAD

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

UNUSUAL_TEXTS = [
    ">>fra<< haus baum",
    "Haus  BAUM",
    "ﬁre ½ haus\tstern",
    "漢字 haus",
    "",
    ">>xyz<< stern",
    "  erde. luft!",
]


def padded(rows: list[list[int]], pad: int, *, first: int | None = None, last: int | None = None) -> torch.Tensor:
    whole = [[*([first] if first is not None else []), *row, *([last] if last is not None else [])] for row in rows]
    longest = max(map(len, whole))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in whole])


def both_logits(
    hf_model: Any,
    numbers: tuple[list[int], list[int]],
    model: EncoderDecoder,
    rows: list[list[int]],
    outputs: list[list[int]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float64 logits of all real target positions of both models, in the order of our vocabulary.

    The numbers are the ids of transformers for our ids of source and target.
    """
    source_number, number = map(torch.tensor, numbers)
    source, target = padded(rows, PAD, last=EOS), padded(outputs, PAD, first=BOS)
    hf_source = source_number[source]
    with torch.no_grad():
        expected = hf_model.double()(
            input_ids=hf_source,
            attention_mask=(source != PAD).long(),
            decoder_input_ids=number[target],
        ).logits[..., number]
        found = model.double()(source, target)
    real = target != PAD
    return found[real], expected[real]


def greedy(model: EncoderDecoder, rows: list[list[int]], most: int = 30) -> list[list[int]]:
    stepper = EncoderDecoderStepper(model, padded(rows, PAD, last=EOS))
    limits = torch.full((len(rows),), most)
    found = greedy_search(stepper, SearchOptions(length_penalty=1.0), limits, SPECIAL_IDS)
    return [list(hypothesis.tokens) for hypothesis in found]


def generate_with_transformers(hf_model: Any, tokenizer: Any, texts: list[str], most: int = 30) -> list[str]:
    """Generate greedily with transformers, as its users do."""
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    banned = {hf_model.config.pad_token_id, hf_model.config.decoder_start_token_id}
    found = hf_model.generate(
        **batch, num_beams=1, do_sample=False, max_length=most + 1, forced_eos_token_id=None,
        bad_words_ids=[[i] for i in banned],
    )  # fmt: skip
    return tokenizer.batch_decode(found, skip_special_tokens=True)


def without_unknown(text: str) -> str:
    """Remove white space and <unk>, which transformers does not print."""
    return "".join(text.replace("<unk>", "").split())


# --- import ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu"},
        {"activation_function": "gelu"},
        {"shared": False},
        {"shared": False, "tie_word_embeddings": False},
        {"scale_embedding": False, "shared": False, "tie_word_embeddings": False},
        {"separate": True},
        {"separate": True, "tie_word_embeddings": False},
    ],
    ids=["swish", "relu", "gelu", "two matrices", "three matrices", "unscaled", "two vocabularies", "and untied"],
)
def test_an_imported_model_gives_the_logits_of_transformers(tmp_path: Path, changes: dict[str, Any]) -> None:
    hf_model = write_marian_folder(tmp_path, **changes)
    opened = read_marian(tmp_path)
    rows = opened.tokenizers.source.encode(sentences(7, seed=5))
    outputs = opened.tokenizers.target.encode([text.upper() for text in sentences(7, seed=6)])
    numbers = their_numbers(tmp_path)
    found, expected = both_logits(hf_model, numbers, opened.model, rows, outputs)
    tokens = [i for i in range(found.size(1)) if i != BOS]
    assert_close(found[:, tokens], expected[:, tokens])
    assert found.std() > 1
    probabilities = found.softmax(-1)
    assert (
        float(probabilities[:, BOS].max()) < 1e-10
    )  # a symbol that MarianMT lacks takes no probability from the others


@pytest.mark.parametrize("separate", [False, True])
def test_an_imported_tokenizer_gives_the_ids_and_texts_of_transformers(tmp_path: Path, separate: bool) -> None:
    write_marian_folder(tmp_path, separate=separate)
    hf_model = transformers.MarianTokenizer.from_pretrained(tmp_path)
    opened, (source_numbers, numbers) = read_marian(tmp_path), their_numbers(tmp_path)
    texts = [*sentences(30, seed=5), *UNUSUAL_TEXTS]
    pair = opened.tokenizers
    found = [[source_numbers[i] for i in [*row, EOS]] for row in pair.source.encode(texts)]
    assert found == hf_model(texts)["input_ids"]
    assert any(hf_model.unk_token_id in row for row in found)
    targets = [text.upper() for text in sentences(30, seed=5)]
    found = [[numbers[i] for i in [*row, EOS]] for row in pair.target.encode(targets)]
    assert found == hf_model(text_target=targets)["input_ids"]
    texts_again = [pair.target.decode(row) for row in pair.target.encode(targets)]
    expected = hf_model.batch_decode(found, skip_special_tokens=True, use_source_tokenizer=False)
    assert [without_unknown(text) for text in texts_again] == [without_unknown(text) for text in expected]


def test_a_model_with_two_vocabularies_gives_the_greedy_tokens_of_transformers(tmp_path: Path) -> None:
    hf_model = write_marian_folder(tmp_path, separate=True, tie_word_embeddings=False, seed=9)
    opened, numbers = read_marian(tmp_path), their_numbers(tmp_path)
    pair = opened.tokenizers
    assert pair.source.size < pair.target.size
    tokenizer, texts = transformers.MarianTokenizer.from_pretrained(tmp_path), sentences(20, seed=5)
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    expected = hf_model.generate(
        **batch, num_beams=1, do_sample=False, max_length=31, forced_eos_token_id=None,
        bad_words_ids=[[hf_model.config.pad_token_id]],
    )  # fmt: skip
    found = [[numbers[1][i] for i in row] for row in greedy(opened.model.double(), pair.source.encode(texts))]
    eos = hf_model.config.eos_token_id
    assert found == [row[: [*row, eos].index(eos)] for row in expected[:, 1:].tolist()]
    assert len({tuple(row) for row in found}) > 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share_encoder_decoder_embeddings": True}, "separate_vocabs is on, and share_encoder_decoder_embeddings"),
        ({"decoder_vocab_size": 7}, "target_vocab.json does not number 7 pieces"),
        ({"eos_token_id": 1}, "target_vocab.json and config.json do not agree"),
    ],
)
def test_a_folder_whose_two_vocabularies_do_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_marian_folder(tmp_path, separate=True)
    change_settings(tmp_path, **changes)
    with pytest.raises(RunError, match=message):
        read_marian(tmp_path)


def test_an_imported_tokenizer_survives_saving_and_loading(tmp_path: Path) -> None:
    write_marian_folder(tmp_path)
    tokenizer = read_marian(tmp_path).tokenizers.source
    again = type(tokenizer).load(tokenizer.to_bytes())  # type: ignore[attr-defined]
    assert again.sha256 == tokenizer.sha256
    assert again.encode(UNUSUAL_TEXTS) == tokenizer.encode(UNUSUAL_TEXTS)
    with pytest.raises(RunError, match="cannot be used"):
        type(tokenizer).load(tokenizer.to_bytes()[:-9])  # type: ignore[attr-defined]


def test_settings_of_the_folder_are_imported(tmp_path: Path) -> None:
    write_marian_folder(tmp_path, dropout=0.25, attention_dropout=0.125)
    config = read_marian(tmp_path).config
    assert (config.data.source, config.data.target, config.search.beam_size) == ("de", "en", 4)
    assert (config.model.dropout, config.model.attention_dropout) == (0.25, 0.125)
    assert (config.model.norm, config.model.activation, config.model.max_positions) == ("post", "swish", 64)
    assert read_marian(tmp_path, source="deu", target="eng").config.data.source == "deu"


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"normalize_before": True}, "normalize_before is on"),
        ("config.json", {"activation_function": "tanh"}, "activation_function is 'tanh'"),
        ("config.json", {"decoder_ffn_dim": 3}, "encoder and decoder have another ffn_dim"),
        ("config.json", {"d_model": "wide"}, "d_model is 'wide'"),
        ("config.json", {"d_model": 31}, "model.d_model = 31"),
        ("config.json", {"encoder_layers": 4}, "lacks weights.*model.encoder.layers.2"),
        ("config.json", {"decoder_layers": 2}, "does not use them: model.decoder.layers.2"),
        ("config.json", {"vocab_size": 7}, "does not number 7 pieces"),
        ("config.json", {"decoder_vocab_size": 7}, "vocabularies of their own"),
        ("config.json", {"encoder_layers": 10**9}, "num_encoder_layers = 1000000000 is not"),
        ("tokenizer_config.json", {"separate_vocabs": True}, "separate_vocabs is on"),
        ("tokenizer_config.json", {"source_lang": None}, "Give --source and --target"),
        ("config.json", {"pad_token_id": [1]}, "do not agree on <unk>, <pad>"),
        ("config.json", {"activation_function": ["relu"]}, "activation_function is"),
        ("vocab.json", {"</s>": 5}, "does not number"),
        ("vocab.json", {"</s>": [5]}, "does not number"),
    ],
)
def test_unsupported_or_invalid_settings_of_a_folder_are_refused_by_name(
    tmp_path: Path, file: str, change: dict[str, Any], message: str
) -> None:
    write_marian_folder(tmp_path)
    change_settings(tmp_path, file, **change)
    with pytest.raises(RunError, match=message):
        read_marian(tmp_path)


# --- pickles ---


def test_a_pickle_is_refused_with_the_reason_unless_it_is_trusted(tmp_path: Path) -> None:
    write_marian_folder(tmp_path)
    before = read_marian(tmp_path).model
    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"pytorch_model\.bin alone. That is a pickle.*--trust-pickle"):
        read_marian(tmp_path)
    after = read_marian(tmp_path, trust_pickle=True).model
    assert all(torch.equal(*pair) for pair in zip(before.parameters(), after.parameters(), strict=True))


# --- export ---


def make_post_norm_parts(**changes: Any) -> Parts:
    return make_parts(**{"norm": "post", "tied_embeddings": "all"} | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "gelu", "bias": False},
        {"activation": "swish", "tied_embeddings": "decoder"},
        {"tied_embeddings": "none", "scale_embeddings": False},
    ],
    ids=["relu", "gelu without biases", "swish, two matrices", "three matrices, unscaled"],
)
def test_an_exported_model_gives_the_logits_of_the_run_in_transformers(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    config, pair, model = make_post_norm_parts(**changes)
    write_marian(tmp_path, config, pair, model)
    hf_model = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    rows = pair.source.encode(sentences(7, seed=5))
    outputs = pair.target.encode([text.upper() for text in sentences(7, seed=6)])
    found, expected = both_logits(hf_model, (marian_numbers(model),) * 2, model, rows, outputs)
    tokens = [i for i in range(found.size(1)) if i not in (PAD, BOS)]
    assert_close(found[:, tokens], expected[:, tokens])
    assert found.std() > 1


def test_an_exported_folder_has_the_format_of_marian(tmp_path: Path) -> None:
    config, pair, model = make_post_norm_parts()
    write_marian(tmp_path, config, pair, model)
    tensors = load_file(tmp_path / "model.safetensors")
    vocabulary = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    size = len(vocabulary)
    assert vocabulary["<pad>"] == size - 1
    assert vocabulary["</s>"] == 0
    assert not tensors["model.shared.weight"][-1].any()
    assert tensors["model.shared.weight"].shape == (size, 30)
    assert {name for name in tensors if "embed_positions" in name} == set()


def test_an_exported_model_generates_the_text_of_the_run_in_transformers(tmp_path: Path) -> None:
    config, pair, model = make_post_norm_parts(tied_embeddings="none")
    write_marian(tmp_path, config, pair, model)
    texts = sentences(9, seed=5)
    hf_model = transformers.MarianMTModel.from_pretrained(tmp_path)
    expected = generate_with_transformers(hf_model, transformers.MarianTokenizer.from_pretrained(tmp_path), texts)
    found = [pair.target.decode(row) for row in greedy(model, pair.source.encode(texts))]
    assert [without_unknown(text) for text in found] == [without_unknown(text) for text in expected]
    assert len(set(expected)) > 1


@pytest.mark.parametrize("zero", [True, False], ids=["a start of zeros", "a trained start"])
def test_the_converter_of_ctranslate2_gives_the_scores_of_the_run_if_it_starts_from_zero(
    tmp_path: Path, zero: bool
) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    config, pair, model = make_post_norm_parts(tied_embeddings="none")
    if zero:
        with torch.no_grad():
            model.target_embedding.tokens.weight[BOS] = 0.0
    write_marian(tmp_path, config, pair, model)
    converter = ctranslate2.converters.TransformersConverter(str(tmp_path))
    translator = ctranslate2.Translator(converter.convert(str(tmp_path / "converted")))
    expected = reference(model, Samples(pair.source.encode(sentences(20, seed=5)), "here"))
    sources = [[*pair.source.pieces(row), "</s>"] for row in expected.samples.rows]
    scored = translator.score_batch(sources, [pair.target.pieces(row) for row in expected.outputs])
    gaps = [
        abs(found - own)
        for result, scores in zip(scored, expected.scores, strict=True)
        for found, own in zip(result.log_probs, scores, strict=True)
    ]
    assert starts_from_zero(model) == zero
    assert max(gaps) < 1e-3 if zero else max(gaps) > 0.1


def test_an_imported_model_is_exported_unchanged(tmp_path: Path) -> None:
    write_marian_folder(tmp_path / "theirs")
    opened = read_marian(tmp_path / "theirs")
    (tmp_path / "ours").mkdir()
    write_marian(tmp_path / "ours", opened.config, opened.tokenizers, opened.model)
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    for name in ("vocab.json", "source.spm", "target.spm"):
        texts = [(tmp_path / side / name).read_bytes() for side in ("theirs", "ours")]
        contents = [json.loads(text) for text in texts] if name.endswith("json") else texts
        assert contents[0] == contents[1]


def test_an_exported_model_is_imported_unchanged(tmp_path: Path) -> None:
    config, pair, model = make_post_norm_parts()
    write_marian(tmp_path, config, pair, model)
    again = read_marian(tmp_path)
    assert again.tokenizers.joint
    assert again.tokenizers.source.encode(sentences(9)) == pair.source.encode(sentences(9))
    original, imported = dict(model.named_parameters()), dict(again.model.named_parameters())
    for name in original:
        rows = (
            [i for i in range(len(original[name])) if i not in (PAD, BOS)]
            if original[name].size(0) == pair.target.size
            else ...
        )
        assert torch.equal(original[name][rows], imported[name][rows]), name
    start, start_again = (each.target_embedding.tokens.weight[BOS] for each in (model, again.model))
    assert start.any()
    assert torch.equal(start, start_again)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"norm": "pre"}, r'model\.norm = "pre"'),
        ({"positions": "rotary"}, r'model\.positions = "rotary"'),
        ({"positions": "learned"}, r'model\.positions = "learned"'),
        ({"activation": "swiglu"}, r'model\.activation = "swiglu"'),
        ({"embedding_norm": True}, r"model\.embedding_norm = true"),
        ({"source_end_mark": False}, r"model\.source_end_mark = false"),
        ({"token_types": 2}, r"model\.token_types = 2"),
        ({"activation": "gelu-tanh"}, r'model\.activation = "gelu-tanh"'),
        ({"norm_epsilon": 1e-6}, r"model\.norm_epsilon = 1e-06"),
        ({"tokenizer": {"kind": "characters"}}, r'tokenizer\.kind = "characters"'),
        ({"tokenizer": {"lowercase": True}}, r"tokenizer\.lowercase = true"),
        ({"tokenizer": {"joint": False, "vocab_size": 40}, "tied_embeddings": "none"}, r"tokenizer\.joint = false"),
    ],
)
def test_models_that_marian_does_not_support_are_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], name: str
) -> None:
    with pytest.raises(RunError, match=f"a MarianMT model cannot be this one: .*{name}"):
        write_marian(tmp_path, *make_post_norm_parts(**changes))
    assert list(tmp_path.iterdir()) == []


def test_the_check_against_transformers_detects_a_difference(tmp_path: Path) -> None:
    config, pair, model = make_post_norm_parts()
    write_marian(tmp_path, config, pair, model)
    expected = reference(model, Samples(pair.source.encode(sentences(9, seed=5)), "here"))
    parity = check_marian(tmp_path, *[marian_numbers(model)] * 2, expected)
    assert parity.largest < 1e-4
    assert parity.same_outputs == 9
    with torch.no_grad():
        model.decoder_layers[0].cross_attention.project_in.weight[40] *= 1.1
    with pytest.raises(ParityError, match="the MarianMT model does not give what the run gives"):
        check_marian(tmp_path, *[marian_numbers(model)] * 2, reference(model, random_samples(pair.source)))


def test_weights_in_several_files_are_read_by_their_index(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    hf_model = write_marian_folder(folder)
    expected = dict(read_marian(folder).model.named_parameters())
    (folder / "model.safetensors").unlink()
    hf_model.float().save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    for name, found in read_marian(folder).model.named_parameters():
        assert torch.equal(found, expected[name])
