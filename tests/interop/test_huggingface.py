"""Import and export of BERT, DistilBERT, RoBERTa and GPT-2, compared with transformers itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.interop.parts import change_settings
from tests.interop.pretrained import ENCODERS, FAMILIES, HOSTILE, minilm_folder, write_folder
from tests.tolerances import assert_close
from torch import Tensor

from manyheads.checkpoint.hub import is_pretrained
from manyheads.config.schema import TASKS, Config, ModelConfig, TokenizerConfig
from manyheads.errors import ParityError, RunError
from manyheads.inference.texts import encode_texts
from manyheads.interop.huggingface.check import check_pretrained
from manyheads.interop.huggingface.reader import HuggingFaceModel, read_pretrained
from manyheads.interop.huggingface.writer import write_pretrained
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.tensors.examples import make_texts
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, load_tokenizer

PAIRS = [("a b", "c"), ("", "hund"), ("katze", ""), ("Où 안녕", "😀 fin")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Path, Any, Any]]:
    """Write every family with every head; return the folder, the model and the tokenizer of transformers."""
    found = {}
    for family in FAMILIES:
        for head in ("language-modeling",) if family == "gpt2" else ("", "classification", "masked-lm"):
            folder = tmp_path_factory.mktemp(f"{family}-{head}")
            labels = {"num_labels": 5} if head == "classification" else {}
            found[family, head] = (folder, *write_folder(folder, family, head, **labels))
    return found


def build(found: HuggingFaceModel, task: str, classes: int = 5) -> Any:
    """Return a model of manyheads with all weights of the folder for a task."""
    config, size = ModelConfig(**found.shape), found.tokenizer.size
    model: Transformer
    if task == "language-modeling":
        model = DecoderOnly(config, size, absent=found.tokenizer.absent)
    elif task == "masked-lm":
        model = MaskedLanguageModel(config, size)
    else:
        pooler = "relu" if found.tokenizer.stored.family == "distilbert" else "tanh"
        model = TextClassifier(ModelConfig(**found.shape, pooling="cls", pooler=pooler), size, classes)  # type: ignore[arg-type]
    model.load_state_dict(found.tensors(TASKS[task].architecture), strict=False)
    return model.eval()


def to_hf_ids(tokenizer: HuggingFaceTokenizer, ids: Tensor) -> Tensor:
    """Convert token ids of manyheads to those of transformers."""
    return torch.tensor([-1 if number is None else number for number in tokenizer.original_ids])[ids]


def encode_both(tokenizer: HuggingFaceTokenizer, fast: Any, texts: list[str]) -> tuple[Tensor, Tensor | None, Any]:
    """Return padded ids and types of manyheads, and the batch of transformers of the same texts."""
    ids, types = make_texts(
        encode_texts(tokenizer.encode, texts, tokenizer.marks_between), pad=PAD, bos=BOS, eos=EOS, with_types=True
    )
    pairs = [text.split("\t") for text in texts]
    inputs = ([a for a, _ in pairs], [b for _, b in pairs]) if len(pairs[0]) == 2 else (texts,)
    return ids, types, fast(*inputs, padding=True, return_tensors="pt", return_token_type_ids=True)


# --- hidden states and logits ---

TEXTS = ["hund katze", "Où est le café ?", "haus", "안녕하세요 세계 und stern"]


@pytest.mark.parametrize("family", ENCODERS)
@torch.no_grad()
def test_hidden_states_are_those_of_transformers_with_padding(family: str, folders: Any) -> None:
    folder, hf_model, fast = folders[family, ""]
    found = read_pretrained(folder)
    model = build(found, "classification")
    for texts in (TEXTS, ["hund\tkatze stern", "haus\tbaum"]):
        ids, types, batch = encode_both(found.tokenizer, fast, texts)
        assert torch.equal(to_hf_ids(found.tokenizer, ids), batch["input_ids"])
        real = batch["attention_mask"].bool()
        extra = {"token_type_ids": batch["token_type_ids"]} if family == "bert" else {}
        expected = hf_model(batch["input_ids"], attention_mask=batch["attention_mask"], **extra).last_hidden_state
        hidden, _ = model.encode(ids, types if family == "bert" else None)
        assert_close(hidden[real], expected[real])


@pytest.mark.parametrize("family", ENCODERS)
@torch.no_grad()
def test_heads_give_the_logits_of_transformers(family: str, folders: Any) -> None:
    for head in ("classification", "masked-lm"):
        folder, hf_model, fast = folders[family, head]
        found = read_pretrained(folder)
        assert found.labels == (() if head == "masked-lm" else tuple(f"LABEL_{n}" for n in range(5)))
        ids, _, batch = encode_both(found.tokenizer, fast, TEXTS)
        expected = hf_model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        logits = build(found, head)(ids)
        if head == "masked-lm":
            real = batch["attention_mask"].bool()
            logits = logits[real][:, [found.tokenizer.ids_by_original[n] for n in range(expected.size(-1))]]
            expected = expected[real]
        assert_close(logits, expected)


@torch.no_grad()
def test_gpt2_gives_the_logits_of_transformers_and_no_special_symbols_that_it_lacks(folders: Any) -> None:
    folder, hf_model, _ = folders["gpt2", "language-modeling"]
    found = read_pretrained(folder)
    model = build(found, "language-modeling")
    assert found.tokenizer.absent == (UNK, PAD, BOS)
    ids = torch.randint(EOS, found.tokenizer.size, (3, 64))
    logits, expected = model(ids), hf_model(to_hf_ids(found.tokenizer, ids)).logits
    columns = [found.tokenizer.ids_by_original[n] for n in range(expected.size(-1))]
    assert_close(logits[..., columns], expected)
    assert_close(logits.log_softmax(-1)[..., columns], expected.log_softmax(-1))
    assert (logits.softmax(-1)[..., :EOS] == 0).all()


def test_old_names_of_norms_and_prefixes_are_read(folders: Any, tmp_path: Path) -> None:
    folder, *_ = folders["bert", ""]
    shutil.copytree(folder, tmp_path / "old")
    weights = load_file(folder / "model.safetensors")
    for new, old in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
        weights = {name.replace(new, old): tensor for name, tensor in weights.items()}
    weights = {f"bert.{name}": tensor for name, tensor in weights.items()}
    save_file({**weights, "bert.embeddings.position_ids": torch.arange(9)}, tmp_path / "old" / "model.safetensors")
    new_weights, old_weights = read_pretrained(folder).body, read_pretrained(tmp_path / "old").body
    assert all(torch.equal(new_weights[name], old_weights[name]) for name in new_weights)


# --- the vocabulary ---


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_are_those_of_the_fast_tokenizer_on_hostile_text(family: str, folders: Any) -> None:
    folder, _, fast = folders[family, "language-modeling" if family == "gpt2" else ""]
    tokenizer = read_pretrained(folder).tokenizer
    again = load_tokenizer(TokenizerConfig(kind="huggingface"), "en", tokenizer.to_bytes())
    assert again.sha256 == tokenizer.sha256
    for loaded in (tokenizer, again):
        for text, row in zip(HOSTILE, loaded.encode(HOSTILE), strict=True):
            expected = fast(text, add_special_tokens=False)["input_ids"]
            assert [tokenizer.original_ids[i] for i in row] == expected, text[:40]
    assert all(
        0 <= i < tokenizer.size and i not in (PAD, BOS, EOS) for row in tokenizer.encode(HOSTILE) for i in row
    )


@pytest.mark.parametrize("family", ENCODERS)
def test_two_texts_are_marked_as_the_fast_tokenizer_does(family: str, folders: Any) -> None:
    folder, _, fast = folders[family, ""]
    tokenizer = read_pretrained(folder).tokenizer
    assert tokenizer.marks_between == (2 if family == "roberta" else 1)
    for pair in PAIRS:
        ids, types, batch = encode_both(tokenizer, fast, ["\t".join(pair)])
        assert torch.equal(to_hf_ids(tokenizer, ids), batch["input_ids"])
        if family == "bert":
            assert types is not None
            assert torch.equal(types, batch["token_type_ids"])


@pytest.mark.parametrize("family", FAMILIES)
def test_text_that_looks_like_a_special_symbol_is_text(family: str, folders: Any) -> None:
    folder, _, fast = folders[family, "language-modeling" if family == "gpt2" else ""]
    tokenizer = read_pretrained(folder).tokenizer
    for text in ("[SEP] a [PAD]", "</s> a <pad><s>", "<|endoftext|>"):
        (row,) = tokenizer.encode([text])
        expected = fast(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert [tokenizer.original_ids[i] for i in row] == expected
        assert not {PAD, BOS, EOS} & set(row)


def test_unpaired_surrogates_are_encoded(folders: Any) -> None:
    for family in FAMILIES:
        tokenizer = read_pretrained(folders[family, "language-modeling" if family == "gpt2" else ""][0]).tokenizer
        lone, joined = tokenizer.encode(["a\ud800b", "\ud83d\ude00"])
        assert lone == tokenizer.encode(["a\ufffdb"])[0]
        assert joined == tokenizer.encode(["😀"])[0]


def test_byte_level_pieces_are_shown_as_text_and_decode_exactly(folders: Any) -> None:
    tokenizer = read_pretrained(folders["gpt2", "language-modeling"][0]).tokenizer
    for text in HOSTILE:
        (row,) = tokenizer.encode([text])
        assert tokenizer.decode(row) == text
        whole = all("<0x" not in piece for piece in tokenizer.pieces(row))
        if whole and "▁" not in text:
            assert "".join(tokenizer.pieces(row)).replace("▁", " ") == text
    assert tokenizer.pieces([EOS, tokenizer.size - 1]) == ["</s>", f"<row {tokenizer.stored.rows - 1}>"]


@pytest.mark.parametrize("kind", ["vocab.txt", "merges.txt"])
def test_an_older_vocabulary_gives_the_same_ids(kind: str, folders: Any, tmp_path: Path) -> None:
    family, head = ("bert", "") if kind == "vocab.txt" else ("gpt2", "language-modeling")
    folder, _, fast = folders[family, head]
    new = read_pretrained(folder).tokenizer
    shutil.copytree(folder, tmp_path / "old")
    (tmp_path / "old" / "tokenizer.json").unlink()
    with pytest.raises(RunError, match=r"has no vocabulary: no tokenizer\.json, vocab\.txt"):
        read_pretrained(tmp_path / "old")
    numbers = sorted(fast.get_vocab().items(), key=lambda item: item[1])
    if kind == "vocab.txt":
        lines = "".join(f"{token}\n" for token, _ in numbers)
        (tmp_path / "old" / "vocab.txt").write_text(lines, encoding="utf-8")
    else:
        (tmp_path / "old" / "vocab.json").write_text(json.dumps(dict(numbers)), encoding="utf-8")
        merges = json.loads(fast.backend_tokenizer.to_str())["model"]["merges"]
        text = "#version: 0.2\n" + "".join(f"{' '.join(merge)}\n" for merge in merges)
        (tmp_path / "old" / "merges.txt").write_text(text, encoding="utf-8")
    old = read_pretrained(tmp_path / "old").tokenizer
    assert old.original_ids == new.original_ids
    assert old.encode(HOSTILE) == new.encode(HOSTILE)


# --- export ---


def run_config(found: HuggingFaceModel, task: str) -> Config:
    family = found.tokenizer.stored.family
    side: dict[str, Any] = {"language": "en", "max_length": 60}
    shape = {**found.shape, "pooling": "cls", "pooler": "relu" if family == "distilbert" else "tanh"}
    tokenizer = {"kind": "huggingface"}
    return Config.model_validate({"task": task, "data": side, "model": shape, "tokenizer": tokenizer})


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_an_exported_model_equals_the_imported_model(family: str, folders: Any, tmp_path: Path) -> None:
    heads = ("language-modeling",) if family == "gpt2" else ("classification", "masked-lm")
    for head in heads:
        folder, hf_model, fast = folders[family, head]
        found = read_pretrained(folder)
        labels = ("sehr gut", "gut", "mäßig", "schlecht", "안녕") if head == "classification" else ()
        model, config = build(found, head), run_config(found, head)  # type: ignore[arg-type]
        out = tmp_path / head
        out.mkdir()
        write_pretrained(out, config, found.tokenizer, model, labels)
        again = read_pretrained(out)
        assert again.labels == labels
        assert (again.shape, again.unused) == (found.shape, ())
        assert again.tokenizer.original_ids == found.tokenizer.original_ids
        for name, tensor in found.tensors(TASKS[head].architecture).items():
            assert torch.equal(again.tensors(TASKS[head].architecture)[name], tensor), name
        opened = type(hf_model).from_pretrained(out)
        for name, tensor in hf_model.state_dict().items():
            if name.endswith("position_embeddings.weight") and family == "roberta":
                tensor = tensor.clone()
                tensor[: 1 + fast.pad_token_id] = 0  # rows that no token has
            assert torch.equal(opened.state_dict()[name], tensor), name
        written = transformers.AutoTokenizer.from_pretrained(out)
        for text in (*HOSTILE, "ab"):
            assert written(text)["input_ids"] == fast(text)["input_ids"]
        if head != "language-modeling":
            assert written("a", "b")["input_ids"] == fast("a", "b")["input_ids"]
        if labels:
            assert opened.config.id2label == dict(enumerate(labels))
        assert check_pretrained(out, found.tokenizer, TASKS[head].architecture, model).largest < 1e-4


def test_a_failed_comparison_is_an_error(folders: Any) -> None:
    folder, *_ = folders["bert", "classification"]
    found = read_pretrained(folder)
    model = build(found, "classification")
    with torch.no_grad():
        model.encoder_layers[1].feed_forward.contract.bias[3] += 0.5
    with pytest.raises(ParityError, match="nothing was kept"):
        check_pretrained(folder, found.tokenizer, "classifier", model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pooling": "mean"}, r'model\.pooling = "mean" \(it has "cls"; --to sentence-transformers holds both\)'),
        ({"norm": "pre"}, r'model\.norm = "pre" \(it has "post"\)'),
        ({"positions": "rotary"}, r'model\.positions = "rotary"'),
        ({"activation": "swiglu"}, r'model\.activation = "swiglu"'),
        ({"scale_embeddings": True}, r"model\.scale_embeddings = true"),
        ({"bias": False}, r"model\.bias = false"),
        ({"embedding_norm": False, "pooler": "relu"}, r"model\.embedding_norm = false; model\.pooler"),
    ],
)
def test_models_that_transformers_does_not_support_are_refused_by_name(
    change: dict[str, Any], message: str, folders: Any, tmp_path: Path
) -> None:
    found = read_pretrained(folders["bert", "classification"][0])
    config = run_config(found, "classification")
    other = config.model_copy(update={"model": config.model.model_copy(update=change)})
    with pytest.raises(RunError, match=rf"of the type bert of transformers cannot be this one: .*{message}"):
        write_pretrained(tmp_path, other, found.tokenizer, build(found, "classification"))
    assert not list(tmp_path.iterdir())


# --- invalid folders ---


@pytest.fixture
def bert(folders: Any, tmp_path: Path) -> Path:
    """Return a copy of the folder of a BERT without a head."""
    return Path(shutil.copytree(folders["bert", ""][0], tmp_path / "bert"))


@pytest.fixture
def classifier(folders: Any, tmp_path: Path) -> Path:
    """Return a copy of the folder of a BERT that classifies."""
    return Path(shutil.copytree(folders["bert", "classification"][0], tmp_path / "classifier"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "electra"}, r"type 'electra'.*Supported are bert, distilbert, roberta, gpt2.*marian"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"hidden_act": "tanhshrink"}, "hidden_act is 'tanhshrink'"),
        ({"hidden_size": "30"}, "hidden_size is '30'"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"num_attention_heads": 7}, "makes no model.*not divisible"),
        ({"hidden_size": None}, "hidden_size is None"),
        ({"num_hidden_layers": 3}, r"lacks weights.*encoder\.layer\.2\.attention"),
        ({"num_hidden_layers": 10**9}, "makes no model"),
        ({"num_hidden_layers": 1}, r"has weights that its config\.json does not speak of: encoder\.layer\.1"),
        ({"hidden_size": 3 * 10**9}, "makes no model"),
        ({"vocab_size": 99}, r"word_embeddings\.weight has \d+ rows, and vocab_size is 99"),
        ({"intermediate_size": 38}, r"expand\.weight is \(37, 30\), not \(38, 30\)"),
        ({"max_position_embeddings": 65}, r"positions\.table\.weight is \(64, 30\), not \(65, 30\)"),
    ],
)
def test_settings_that_are_unsupported_or_do_not_fit_the_weights_are_named(
    changes: dict[str, Any], message: str, bert: Path
) -> None:
    change_settings(bert, **changes)
    assert is_pretrained(bert)
    with pytest.raises(RunError, match=message):
        read_pretrained(bert)


def test_a_multi_label_head_is_not_imported(classifier: Path) -> None:
    change_settings(classifier, problem_type="multi_label_classification")
    assert read_pretrained(classifier).labels == ()
    change_settings(classifier, problem_type="single_label_classification")
    assert len(read_pretrained(classifier).labels) == 5


def test_missing_unknown_and_nan_weights_are_named(bert: Path) -> None:
    path = bert / "model.safetensors"
    whole = load_file(path)
    name = "encoder.layer.1.output.dense.bias"
    for changed, message in (
        ({key: tensor for key, tensor in whole.items() if key != name}, f"lacks weights.*{name}"),
        ({**whole, "encoder.layer.0.adapter.weight": torch.ones(2)}, r"does not speak of: .*0\.adapter\.weight"),
        ({**whole, name: torch.full((30,), torch.nan)}, f"{name} holds values that are not finite"),
        ({}, "lacks weights"),
    ):
        save_file(changed, path)
        with pytest.raises(RunError, match=message):
            read_pretrained(bert)


def test_a_pickle_is_read_only_if_it_is_trusted(classifier: Path) -> None:
    expected = read_pretrained(classifier)
    weights = load_file(classifier / "model.safetensors")
    (classifier / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"has neither model\.safetensors"):
        read_pretrained(classifier)
    torch.save(weights, classifier / "pytorch_model.bin")
    with pytest.raises(RunError, match=r"pytorch_model\.bin alone. That is a pickle"):
        read_pretrained(classifier)
    found = read_pretrained(classifier, trust_pickle=True)
    assert all(torch.equal(found.body[name], expected.body[name]) for name in expected.body)
    check_pretrained(classifier, found.tokenizer, "classifier", build(found, "classification"), trust_pickle=True)


def test_a_vocabulary_that_does_not_fit_is_refused(bert: Path) -> None:
    path = bert / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for change, message in (
        ({"model": None}, "cannot be read"),
        ({"model": {**content["model"], "vocab": {**content["model"]["vocab"], "zzz": 10**6}}}, "beyond its"),
        (
            {"post_processor": {"type": "BertProcessing", "sep": ["haus", 9], "cls": ["[CLS]", 3]}},
            "marks two texts",
        ),
    ):
        path.write_text(json.dumps({**content, **change}), encoding="utf-8")
        with pytest.raises(RunError, match=message):
            read_pretrained(bert)


# --- a published model ---


@torch.no_grad()
def test_a_real_bert_gives_the_hidden_states_and_ids_of_transformers() -> None:
    folder = minilm_folder()
    found = read_pretrained(folder)
    fast = transformers.AutoTokenizer.from_pretrained(folder)
    hf_model = transformers.AutoModel.from_pretrained(folder).eval()
    model = build(found, "classification", classes=2)
    for text, row in zip(HOSTILE, found.tokenizer.encode(HOSTILE), strict=True):
        expected = fast(text, add_special_tokens=False)["input_ids"]
        assert [found.tokenizer.original_ids[i] for i in row] == expected, text[:40]
    texts = ["A gripping film.", "안녕하세요", "It isn't over yet, is it? " * 5]
    ids, types, batch = encode_both(found.tokenizer, fast, texts)
    real = batch["attention_mask"].bool()
    output = hf_model(**batch)
    hidden, mask = model.encode(ids, types)
    assert_close(hidden[real], output.last_hidden_state[real])
    pooled = torch.tanh(model.pooler(model.pool(hidden, mask)))
    assert_close(pooled, output.pooler_output)
    assert sum(tensor.numel() for tensor in found.tensors("classifier").values()) == 22_713_216
