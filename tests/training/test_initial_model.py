"""Training from models of transformers, and runs that are imported from them or exported to them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.interop.pretrained import ENCODERS, write_folder
from tests.runs.labelled import examples, labelled_config, write_labelled, write_unlabelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import make_config, make_languages_config, training_report, write_corpus, write_languages
from tests.tasks.masked_lm.test_scoring import masked_config
from tests.tolerances import approx, assert_close
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.cli.main import run as program
from manyheads.errors import ConfigError, RunError, UsageError
from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.inference.translation.translator import Translator
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import export
from manyheads.runs.import_model import import_model
from manyheads.runs.train import train
from manyheads.tensors.examples import make_texts
from manyheads.tensors.models import load_model
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair

NO_LEARNING = {"steps": 1, "learning_rate": 1e-30, "warmup_steps": 0, "weight_decay": 0.0}
TEXTS = ["a great film", "the plot was awful", "안녕하세요"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_unlabelled(write_play(write_labelled(tmp_path_factory.mktemp("text"))))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any, Any]]:
    found = {}
    for family in ENCODERS:
        folder = tmp_path_factory.mktemp(family)
        found[family] = (folder, *write_folder(folder, family, "classification", num_labels=2))
    folder = tmp_path_factory.mktemp("gpt2")
    found["gpt2"] = (folder, *write_folder(folder, "gpt2", "language-modeling"))
    folder = tmp_path_factory.mktemp("masked")
    found["masked"] = (folder, *write_folder(folder, "bert", "masked-lm"))
    return found


def original_probabilities(model: Any, tokenizer: Any, texts: list[str]) -> np.ndarray:
    batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        return model(**batch).logits.softmax(-1).numpy()


def probabilities_of(classifier: Classifier, texts: list[str]) -> np.ndarray:
    return np.array([list(result.probabilities.values()) for result in classifier.classify(texts)])


# --- encoders ---


@pytest.mark.parametrize("family", ENCODERS)
def test_a_classifier_of_the_same_classes_is_initialized_with_the_whole_model(
    family: str, folders: Any, text: Path, tmp_path: Path
) -> None:
    folder, original, fast = folders[family]
    origin = Path(shutil.copytree(folder, tmp_path / "origin"))
    model = {"init_from": str(origin), "dropout": 0.0}
    report = training_report(labelled_config(text, model=model, training=NO_LEARNING), tmp_path / "run", "from ")
    shutil.rmtree(origin)
    assert report.endswith("new: none; not used: none")
    classifier = Classifier.load(tmp_path / "run")
    assert classifier.tokenizer.kind == "huggingface"
    assert probabilities_of(classifier, TEXTS) == approx(original_probabilities(original, fast, TEXTS))
    scored = evaluate(tmp_path / "run", split="test")
    assert scored.to_json()["examples"] == 14
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"tokenizer.source.json", "tokenizer.target.json", "model.safetensors"} <= files
    (tmp_path / "run" / "tokenizer.source.json").write_bytes(
        (tmp_path / "run" / "tokenizer.source.json").read_bytes().replace(b'"rows": ', b'"rows": 1')
    )
    with pytest.raises(RunError, match=r"is not the one this run was begun with"):
        Classifier.load(tmp_path / "run")


def test_a_student_is_initialized_with_evenly_spread_layers_of_its_teacher(tmp_path: Path) -> None:
    corpus, teacher = write_corpus(tmp_path / "corpus"), tmp_path / "teacher"
    train(make_config(corpus, model={"num_decoder_layers": 4}), teacher)
    teacher_weights = RunDirectory(teacher).weights()
    for number, kept in ((2, [0, 3]), (3, [0, 2, 3])):
        model = {"init_from": str(teacher), "init_decoder_layers": number, "num_decoder_layers": 3}
        student = tmp_path / f"student-{number}"
        train(make_config(corpus, model=model, training=NO_LEARNING), student)
        student_weights = RunDirectory(student).weights()
        assert RunDirectory(student).config().model.num_decoder_layers == number
        for name, tensor in student_weights.items():
            side, layer, *rest = name.split(".")
            old = ".".join([side, str(kept[int(layer)]), *rest]) if side == "decoder_layers" else name
            torch.testing.assert_close(tensor, teacher_weights[old], msg=name)
    model = {"init_from": str(teacher), "init_decoder_layers": 5}
    with pytest.raises(RunError, match=r"teacher has 4 decoder layers, fewer than model.init_decoder_layers = 5"):
        train(make_config(corpus, model=model), tmp_path / "none")
    with pytest.raises(ValueError, match=r"model.init_decoder_layers is for a pre-trained model"):
        make_config(corpus, model={"init_decoder_layers": 1})


def test_a_classifier_of_other_classes_has_a_new_head_and_learns(
    folders: Any, text: Path, tmp_path: Path, training_seed: int
) -> None:
    rows = [("good" if label == "1" else "bad", example) for label, example in examples(200)]
    (text / "other.tsv").write_text("".join(f"{label}\t{example}\n" for label, example in rows), encoding="utf-8")
    config = labelled_config(
        text,
        data={"train": "other", "valid": 0.2, "drop_overlap": False},
        model={"init_from": str(folders["bert"][0]), "pooling": "cls", "dropout": 0.1},
        training={
            "steps": 150, "save_every": 50, "learning_rate": 3e-3, "warmup_steps": 30, "schedule": "linear",
            "optimizer": "adamw", "seed": training_seed,
        },
    )  # fmt: skip
    listener = CollectingListener()
    done = train(config, tmp_path / "run", listener=listener)
    (report,) = [message for message in listener.messages if message.startswith("from ")]
    assert "new: output.weight, output.bias; not used: output.bias, output.weight" in report
    assert done.best >= 0.75  # of two classes
    weights, before = load_file(tmp_path / "run" / "model.safetensors"), read_pretrained(folders["bert"][0]).body
    assert all(not torch.equal(weights[name], before[name]) for name in before)


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_pooler_of_the_first_token_is_new_for_mean_pooling(
    pooling: str, imported: bool, text: Path, tmp_path: Path
) -> None:
    """A head that an import made up does not determine the pooling."""
    origin = tmp_path / "bare"
    write_folder(origin, "bert")
    if imported:
        import_model(str(origin), tmp_path / "imported", labels=["0", "1"])
        origin = tmp_path / "imported"
    model = {"init_from": str(origin), "pooling": pooling, "dropout": 0.0}
    report = training_report(labelled_config(text, model=model, training=NO_LEARNING), tmp_path / "run", "from ")
    pooler = "pooler.weight, pooler.bias, " if pooling == "mean" else ""
    assert f"new: {pooler}output.weight, output.bias; not used: " in report
    unused = report.partition("not used: ")[2]
    assert ("pooler.bias, pooler.weight" in unused) == (pooling == "mean")
    assert RunDirectory(tmp_path / "run").config().model.pooling == pooling


def test_masked_language_modeling_continues_with_the_head_and_the_mask_of_bert(
    folders: Any, text: Path, tmp_path: Path
) -> None:
    folder, original, fast = folders["masked"]
    config = masked_config(
        text, model={"init_from": str(folder), "dropout": 0.0}, training=NO_LEARNING, tokenizer={"sampling": 0.0}
    )
    report = training_report(config, tmp_path / "run", "from ")
    assert report.endswith("new: none; not used: none")
    run = RunDirectory(tmp_path / "run")
    tokenizer = run.tokenizers(run.config()).source
    assert tokenizer.pieces([tokenizer.mask]) == ["[MASK]"]
    from manyheads.training.batch_sources import hide

    shown = hide([9] * 200, 0.5, np.random.default_rng(1), tokenizer).ids
    assert (shown == tokenizer.mask).sum() > 50
    model = load_model(run, run.config(), TokenizerPair(tokenizer, tokenizer, joint=True))
    ids, _ = make_texts(tokenizer.encode(["hund katze"]), pad=PAD, bos=BOS, eos=EOS, with_types=False)
    batch = fast(["hund katze"], return_tensors="pt")
    with torch.no_grad():
        found = model(ids)[..., [tokenizer.ids_by_original[n] for n in range(len(fast) + 3)]]
        assert_close(found, original(**batch).logits)


def test_a_model_for_another_kind_of_task_is_refused_by_name(folders: Any, text: Path, tmp_path: Path) -> None:
    gpt2, bert = str(folders["gpt2"][0]), str(folders["bert"][0])
    with pytest.raises(RunError, match=r'of the type gpt2: a "classification" training cannot .* "language-model'):
        train(labelled_config(text, model={"init_from": gpt2}), tmp_path / "run")
    with pytest.raises(
        RunError, match=r'of the type bert: a "language-modeling" .*"classification" or "masked-lm"'
    ):
        train(make_language_config(text, model={"init_from": bert}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_weights_of_a_run_that_are_missing_or_not_finite_are_named(text: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    train(labelled_config(text, training={"steps": 1}), first)
    config = labelled_config(text, model={"init_from": str(first)}, training={"steps": 1})
    weights = load_file(first / "model.safetensors")
    name = "encoder_layers.0.feed_forward.expand.bias"
    for changed, message in (
        ({key: tensor for key, tensor in weights.items() if key != name}, f"has no {name}"),
        ({**weights, name: torch.full((20,), torch.inf)}, f"{name} holds values that are not finite"),
        ({**weights, name: torch.ones(19)}, rf"{name} is \(19,\) in .*, but \(20,\) here"),
    ):
        save_file(changed, first / "model.safetensors")
        with pytest.raises(RunError, match=message):
            train(config, tmp_path / "run")
        shutil.rmtree(tmp_path / "run")


# --- language models ---


def original_text(original: Any, fast: Any, prompt: str, count: int) -> str:
    ids = fast(prompt, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        for _ in range(count):
            ids = torch.cat([ids, original(ids).logits[:, -1:].argmax(-1)], 1)
    return str(fast.decode(ids[0][-count:]))


def test_an_imported_gpt2_writes_the_same_text(folders: Any, tmp_path: Path) -> None:
    folder, original, fast = folders["gpt2"]
    done = import_model(str(folder), tmp_path / "run", language="de")
    assert done.parity.largest < 1e-4
    assert (done.task, done.new, done.unused) == ("language-modeling", (), ())
    generator = Generator.load(tmp_path / "run")
    assert generator.window == 64
    greedy = GenerateOptions(sampling=None, max_tokens=20)
    for prompt in ("hund katze", "안녕", "\n"):
        (found,) = generator.generate([prompt], greedy)[0].samples
        assert found.text == original_text(original, fast, prompt, len(found.tokens)).replace("\ufffd", "")
        assert len(found.tokens) == 20
    (tmp_path / "new.txt").write_text("hund katze\nstern\n", encoding="utf-8")
    scored = evaluate(tmp_path / "run", source=tmp_path / "new.txt").to_json()
    ids = fast("\nhund katze\nstern\n", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        scores = original(ids[:, :-1]).logits[0].log_softmax(-1)
        right = -scores.gather(1, ids[0, 1:, None]).mean().item()
    assert scored["loss"] == approx(right)


def test_training_from_a_gpt2_and_from_its_imported_run_has_the_same_losses(
    folders: Any, text: Path, tmp_path: Path, training_seed: int
) -> None:
    folder, *_ = folders["gpt2"]
    import_model(str(folder), tmp_path / "brought")
    losses = {}
    for origin in (folder, tmp_path / "brought"):
        listener, out = CollectingListener(), tmp_path / f"from-{origin.name}"
        training = {"steps": 30, "save_every": 15, "learning_rate": 3e-3, "seed": training_seed}
        config = make_language_config(text, model={"init_from": str(origin), "dropout": 0.0}, training=training)
        train(config, out, listener=listener)
        assert any(message.startswith(f"as in {origin}: d_model = 30") for message in listener.messages)
        lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        losses[origin.name] = [record["loss"] for record in records if record["kind"] == "validation"]
        assert losses[origin.name][-1] < losses[origin.name][0]
    first, second = losses.values()
    assert first == second


def test_an_absent_symbol_is_never_predicted(folders: Any, text: Path, tmp_path: Path) -> None:
    config = make_language_config(
        text,
        model={"init_from": str(folders["gpt2"][0])},
        training={"steps": 3, "label_smoothing": 0.1, "learning_rate": 1e-3, "save_every": 3},
    )
    train(config, tmp_path / "run")
    generator = Generator.load(tmp_path / "run")
    with torch.no_grad():
        assert (generator.model(torch.tensor([[5, 6]])).softmax(-1)[..., :EOS] == 0).all()


@pytest.mark.parametrize("vocabulary", ["keep", "extend", "replace"])
def test_the_vocabulary_of_a_language_model_is_kept_extended_or_replaced(
    vocabulary: str, text: Path, tmp_path: Path
) -> None:
    first, listener = tmp_path / "first", CollectingListener()
    train(make_language_config(text), first)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "play.txt").write_text("ZEBRA: 안녕, quiz!\n" * 20, encoding="utf-8")
    model = {"init_from": str(first), "init_vocabulary": vocabulary, "dropout": 0.0}
    train(
        make_language_config(tmp_path / "more", model=model, training=NO_LEARNING),
        tmp_path / "run",
        listener=listener,
    )
    old, new = (RunDirectory(path) for path in (first, tmp_path / "run"))
    before, after = (run.tokenizers(run.config()).target for run in (old, new))
    rows, found = (load_file(run.path / "model.safetensors")["embedding.tokens.weight"] for run in (old, new))
    pieces, kept = after.pieces(range(after.size)), before.pieces(range(before.size))
    if vocabulary == "keep":
        assert after.sha256 == before.sha256
    elif vocabulary == "extend":
        assert pieces[: before.size] == kept
        assert {"Z", "안", "녕", "q"} <= {*pieces[before.size :]}
    else:
        assert "안" in pieces
        assert "c" not in pieces
    for row, piece in enumerate(pieces):
        if piece in kept:
            assert torch.equal(found[row], rows[kept.index(piece)]), piece
    taken = sum(piece in kept for piece in pieces)
    (report,) = [message for message in listener.messages if message.startswith("from ")]
    if vocabulary != "keep":
        assert f"({taken} rows taken, {after.size - taken} new, {before.size} there)" in report


def test_a_pretrained_vocabulary_is_replaced_by_one_of_the_text(folders: Any, text: Path, tmp_path: Path) -> None:
    model = {"init_from": str(folders["bert"][0]), "init_vocabulary": "replace", "dropout": 0.0}
    config = labelled_config(text, model=model, training=NO_LEARNING, tokenizer={"kind": "characters"})
    report = training_report(config, tmp_path / "run", "from ")
    assert "resized: embedding.tokens.weight (" in report
    found = RunDirectory(tmp_path / "run")
    tokenizer = found.tokenizers(found.config()).source
    assert tokenizer.kind == "characters"
    pretrained = read_pretrained(folders["bert"][0])
    row = pretrained.body["embedding.tokens.weight"][pretrained.tokenizer.encode(["w"])[0][0]]
    assert torch.equal(found.weights()["embedding.tokens.weight"][tokenizer.encode(["w"])[0][0]], row)


# --- import and export ---


@pytest.mark.parametrize("family", ENCODERS)
def test_an_imported_classifier_classifies_like_transformers_and_is_exported_again(
    family: str, folders: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import transformers

    folder, original, fast = folders[family]
    capsys.readouterr()
    assert program(["import", str(folder), "-o", str(tmp_path / "run"), "--language", "en", "--json", "-q"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == "", "transformers draws no bars of its own"
    assert (document["task"], document["new"]) == ("classification", [])
    assert document["parity"]["largest"] < 1e-4
    classifier = Classifier.load(tmp_path / "run")
    assert (classifier.warning, classifier.labels.names) == (None, ("LABEL_0", "LABEL_1"))
    right = original_probabilities(original, fast, TEXTS)
    assert probabilities_of(classifier, TEXTS) == approx(right)
    done = export(tmp_path / "run", tmp_path / "out", "huggingface")
    assert done.parity.largest < 1e-4
    assert "labels are the same" in done.lines()[1]
    assert done.lines()[-1] == "verdict: both give the same results: what is left is rounding"
    assert document["verdict"].endswith("Use the run in place of the original")
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    written = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert original_probabilities(again, written, TEXTS) == approx(right)


def test_a_head_that_was_never_trained_is_warned_of_before_classification(
    folders: Any, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, line = str(folders["masked"][0]), str(tmp_path / "line.txt")
    Path(line).write_text("a great film\n", encoding="utf-8")
    done = import_model(folder, tmp_path / "run", labels=["0", "1"])
    assert done.new == ("pooler.weight", "pooler.bias", "output.weight", "output.bias")
    assert any(text.startswith("warning: never trained, and by chance: pooler.weight") for text in done.lines())
    assert "verdict: the new weights are random: train the run before you use it" in done.lines()
    capsys.readouterr()
    assert program(["classify", str(tmp_path / "run"), line]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("warning: the head of this model was never trained")
    assert printed.out.split("\t")[0] in ("0", "1")
    assert program(["classify", str(tmp_path / "run"), line, "-q"]) == 0
    assert capsys.readouterr().err == ""
    listener = CollectingListener()
    model = {"init_from": str(tmp_path / "run"), "dropout": 0.0}
    train(labelled_config(text, model=model, training=NO_LEARNING), tmp_path / "tuned", listener=listener)
    assert any("new: output.weight, output.bias" in message for message in listener.messages)
    assert Classifier.load(tmp_path / "tuned").warning is None


def test_an_encoder_without_a_head_requires_labels(tmp_path: Path) -> None:
    write_folder(tmp_path / "bert", "bert")
    with pytest.raises(RunError, match=r"an encoder without a head: it classifies nothing.*--labels A,B"):
        import_model(str(tmp_path / "bert"), tmp_path / "run")
    for labels in (["A"], ["A", "B", "A"]):
        with pytest.raises(UsageError, match="give at least two, no label twice"):
            import_model(str(tmp_path / "bert"), tmp_path / "run", labels=labels)
    with pytest.raises(RunError, match="nowhere is neither a folder nor a name on the Hugging Face hub"):
        import_model("nowhere", tmp_path / "run")
    with pytest.raises(UsageError, match="give --language in the place of"):
        import_model(str(tmp_path / "bert"), tmp_path / "run", source="de")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bert"]


def test_a_language_model_is_exported_and_an_unsupported_one_is_refused_by_name(
    folders: Any, text: Path, tmp_path: Path
) -> None:
    import transformers

    folder, original, _ = folders["gpt2"]
    import_model(str(folder), tmp_path / "run")
    done = export(tmp_path / "run", tmp_path / "out", "huggingface")
    assert done.parity.same_outputs == done.parity.compared
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in original.state_dict().items())
    train(make_language_config(text, training={"steps": 1}), tmp_path / "own")
    message = (
        r'type gpt2 of transformers cannot be this one: tokenizer\.kind = "characters".*model\.positions = "sin'
    )
    with pytest.raises(RunError, match=message):
        export(tmp_path / "own", tmp_path / "no", "huggingface")
    with pytest.raises(
        UsageError, match=r'"language-modeling", such as .* Use --to huggingface or html or javascript'
    ):
        export(tmp_path / "run", tmp_path / "no", "ctranslate2")
    assert not (tmp_path / "no").exists()


def test_without_transformers_an_export_is_compared_by_reading_it_back(
    folders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    for name in ("manyheads.runs.export", "manyheads.runs.import_model"):
        monkeypatch.setattr(import_module(name), "has_transformers", lambda: False)
    done = import_model(str(folders["roberta"][0]), tmp_path / "run")
    assert done.parity is None
    assert export(tmp_path / "run", tmp_path / "out", "huggingface").parity.largest == 0.0


# --- further languages ---

EN_FR, BOTH = {"source": "en", "target": "fr"}, {"source": "en", "target": "de", "both": True}


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with text in three languages, and runs of one direction and of two."""
    folder = tmp_path_factory.mktemp("languages")
    write_languages(folder / "text")
    train(make_config(folder / "text"), folder / "de-en")
    pairs = make_languages_config(folder / "text", data={"pairs": [BOTH]}, tokenizer={"vocab_size": 75})
    train(pairs, folder / "both")
    return folder


@pytest.mark.parametrize(
    ("parent", "pieces", "data", "new"),
    [
        ("de-en", 70, {}, ["<to-de>", "<to-en>", "<to-fr>"]),
        ("both", 75, {}, ["<to-fr>"]),
        ("de-en", 70, {"terms": 0.5}, ["<term>", "</term>"]),
    ],
)
def test_a_run_learns_further_languages_and_hints_with_its_pieces_and_new_symbols(
    languages: Path, tmp_path: Path, parent: str, pieces: int, data: dict[str, Any], new: list[str]
) -> None:
    listener, model = CollectingListener(), {"init_from": str(languages / parent), "dropout": 0.0}
    make = make_config if data else make_languages_config
    config = make(languages / "text", data=data, model=model, training=NO_LEARNING)
    train(config, tmp_path / "run", listener=listener)
    assert f"vocabulary: {pieces} pieces kept; new: {', '.join(new)}" in listener.messages
    (taken,) = [text for text in listener.messages if "tensors taken" in text]
    assert f"source_embedding.tokens.weight ({pieces} rows taken, {len(new)} new, {pieces} there)" in taken
    before, after = (
        load_file(path / "model.safetensors")["source_embedding.tokens.weight"]
        for path in (languages / parent, tmp_path / "run")
    )
    assert len(after) == pieces + len(new)
    assert_close(after[:pieces], before)
    own, old = (Translator.load(path).tokenizers.target for path in (tmp_path / "run", languages / parent))
    texts = ["the dog sings", "der Hund", "<to-fr> 漢"]
    assert own.encode(texts) == old.encode(texts)
    assert own.pieces(range(pieces)) == old.pieces(range(pieces))
    assert list(own.reserved) == [*old.reserved, *new]
    assert own.decode([*own.reserved.values(), *own.encode(["the dog"])[0]]) == "the dog"


def test_a_replaced_vocabulary_keeps_the_rows_of_the_pieces_and_symbols_that_it_shares(
    languages: Path, tmp_path: Path
) -> None:
    model = {"init_from": str(languages / "both"), "init_vocabulary": "replace", "dropout": 0.0}
    config = make_languages_config(languages / "text", model=model, training=NO_LEARNING)
    report = training_report(config, tmp_path / "run", "from ")
    for name in ("source_embedding.tokens.weight", "output.bias"):
        assert f"{name} (" in report.partition("resized: ")[2]
        before, after = (
            dict(zip(Translator.load(run).tokenizers.target.pieces(range(len(rows))), rows, strict=True))
            for run in (languages / "both", tmp_path / "run")
            for rows in [RunDirectory(run).weights()[name]]
        )
        shared = before.keys() & after.keys()
        assert {"<to-de>", "<to-en>", "▁the"} <= shared
        assert "<to-fr>" in after
        for piece in shared:
            assert_close(after[piece], before[piece])


def test_a_run_of_one_direction_that_starts_from_one_of_several_has_the_symbol_of_its_target(
    languages: Path, tmp_path: Path
) -> None:
    model = {"init_from": str(languages / "both")}
    train(make_config(languages / "text", model=model, training=NO_LEARNING), tmp_path / "run")
    before, after = Translator.load(languages / "both").to(target="en"), Translator.load(tmp_path / "run")
    assert after.prefix == before.prefix != ()
    texts = ["der Hund singt"]
    assert after.translate(texts)[0].translation == before.translate(texts)[0].translation


def test_a_vocabulary_for_each_side_is_refused_for_several_languages_and_for_one_matrix(
    languages: Path, tmp_path: Path
) -> None:
    separate = {"vocab_size": 45, "joint": False}
    config = make_config(languages / "text", tokenizer=separate, model={"tied_embeddings": "decoder"})
    train(config, tmp_path / "separate")
    model = {"init_from": str(tmp_path / "separate")}
    with pytest.raises(ConfigError, match=r"data\.pairs share one vocabulary, but tokenizer\.joint = false"):
        train(make_languages_config(languages / "text", model=model), tmp_path / "run")
    model = {"init_from": str(languages / "de-en"), "init_vocabulary": "replace", "tied_embeddings": "decoder"}
    characters = make_config(languages / "text", tokenizer={"kind": "characters", "joint": False}, model=model)
    with pytest.raises(ConfigError, match=r'tied_embeddings = "all" needs one vocabulary'):
        train(characters, tmp_path / "run")
