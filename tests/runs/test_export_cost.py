"""A quantized export is judged by its BLEU, loss and outputs in comparison with float32."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.runs.parts import make_config, write_corpus
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from korean_evidence import in_english
from manyheads.cli.main import run as program
from manyheads.cli.verbs import verdict_sentences
from manyheads.data.batch import pad_rows
from manyheads.errors import ParityError
from manyheads.evaluation import BootstrapResult, score
from manyheads.interop.bundle import load_run
from manyheads.interop.reference import decoder_input, token_scores
from manyheads.runs import export_cost
from manyheads.runs.export import export
from manyheads.runs.export_cost import QuantizationCost
from manyheads.runs.train import train
from manyheads.tasks.corpus import available_pairs
from manyheads.tasks.translation.translator import Translator
from manyheads.text.tokenizer import EOS, PAD

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(make_config(write_corpus(folder / "corpus"), training={"steps": 60}), folder / "run")
    return folder / "run"


def bootstrap(baseline: float, difference: float, p_value: float = 0.01) -> BootstrapResult:
    interval = (difference - 0.4, difference + 0.4)
    return BootstrapResult(
        "bleu", "SIGNATURE", baseline + difference, baseline, difference, interval, 0.1, p_value, 1000, 1
    )


COST = QuantizationCost(
    quantization="int8",
    compute_type="int8_float32",
    device="processor",
    sentences=500,
    origin="validation sentences",
    loss=1.834,
    loss_float32=1.832,
    same_outputs=431,
    bleu=bootstrap(38.6, -0.2),
)


def test_the_line_states_the_cost_the_device_and_the_text() -> None:
    assert COST.line() == (
        "int8 costs 0.20 BLEU on this processor (38.60 -> 38.40 on 500 validation sentences, 95 % interval "
        "-0.20 to 0.60; loss 1.832 -> 1.834 nats a token; 431 of 500 outputs are the same; SIGNATURE)"
    )
    better = replace(COST, bleu=bootstrap(38.6, 0.1))
    assert better.line().startswith("int8 costs no BLEU on this processor (38.60 -> 38.70 on ")
    other = replace(COST, quantization="int16", device="GPU")
    assert other.line().startswith("int16, computed in int8_float32, costs 0.20 BLEU on this GPU (")
    json.dumps(COST.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"same_outputs": 500}, "int8 changes no output on this text: use it"),
        ({"bleu": bootstrap(38.6, 0.5)}, "int8 costs nothing on this text: use it"),
        ({"bleu": bootstrap(38.6, -0.5)}, "int8 costs 0.50 BLEU on this text, which is usual: use it where"),
        (
            {"bleu": bootstrap(38.6, -0.51)},
            "more than chance, and more than usual for a model of this quality (up to 0.50)",
        ),
        ({"bleu": bootstrap(20.0, -0.41)}, "more than usual for a model of this quality (up to 0.40)"),
        (
            {"bleu": bootstrap(38.6, -0.1)},
            "the difference of 0.10 BLEU is within chance, and at worst a usual cost: use int8",
        ),
        (
            {"bleu": bootstrap(38.6, -0.11)},
            "within chance, but up to 0.51 BLEU may be lost: 500 sentences are too few",
        ),
        ({"bleu": bootstrap(38.6, -0.5, p_value=0.05)}, "within chance, but up to 0.90 BLEU may be lost"),
        ({"bleu": bootstrap(38.6, -1.1)}, "costs more than 1 BLEU or 0.1 nats a token, and was kept by --force"),
        ({"bleu": bootstrap(7.36, -0.53)}, "At BLEU 7.4, more training matters more than the number format"),
        ({"bleu": None, "loss": 1.8419}, "int8 costs less than 0.01 nats a token, as usual: use it"),
        ({"bleu": None, "loss": 1.8425}, "int8 costs 0.010 nats a token, more than the usual 0.01: compare it"),
        ({"sentences": 99}, "int8 costs less than 0.01 nats a token, as usual: use it"),
    ],
)
def test_the_verdict_compares_the_cost_with_chance_and_with_usual_costs(
    changes: dict[str, Any], words: str
) -> None:
    verdict = replace(COST, **changes).verdict()
    assert words in verdict
    assert not in_english(verdict, verdict_sentences())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bleu": None, "origin": "rows of random pieces"}, "The run's validation text is not on this machine"),
        ({"sentences": 99}, "BLEU needs at least 100 sentences"),
        ({"bleu": bootstrap(4.9, -4.0)}, "BLEU is 4.90 in float32, too little to lose any"),
    ],
)
def test_the_loss_decides_where_bleu_is_meaningless(changes: dict[str, Any], message: str) -> None:
    cost = replace(COST, **changes)
    assert cost.line().startswith(
        "int8 costs 0.002 nats a token on this processor (loss 1.832 -> 1.834 nats a token"
    )
    assert message in cost.line()
    assert not cost.too_high
    assert replace(cost, loss=2.0).too_high


@pytest.mark.parametrize(
    ("bleu", "loss", "refused"),
    [
        (bootstrap(38.6, -0.9), 1.834, False),
        (bootstrap(38.6, -1.1), 1.834, True),
        (bootstrap(38.6, -1.1, p_value=0.06), 1.834, False),
        (bootstrap(38.6, 0.3), 1.93, False),
        (bootstrap(38.6, 0.3), 1.94, True),
    ],
)
def test_a_significant_high_cost_is_refused(bleu: BootstrapResult, loss: float, refused: bool) -> None:
    assert replace(COST, bleu=bleu, loss=loss).too_high is refused


def test_run_and_export_are_scored_on_the_validation_text(trained: Path, tmp_path: Path) -> None:
    listener = CollectingListener()
    cost = export(trained, tmp_path / "out", "ctranslate2", quantization="int8", listener=listener).cost
    assert listener.phases[-1] == ("translating with both", 12)
    assert cost.bleu is not None
    loaded = load_run(trained)
    pairs = available_pairs(loaded.config, "valid", 500)
    assert (cost.sentences, cost.origin) == (len(pairs), "validation sentences, beam 2")
    assert len(pairs) == 6
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    for path, right in ((trained, cost.bleu.baseline), (tmp_path / "out", cost.bleu.score)):
        translated = Translator.load(path, engine="ctranslate2").translate(sources)
        outputs = [one.translation for one in translated]
        assert right == approx(score(outputs, references, language="en").bleu, dtype=torch.float64)
    rows, targets = loaded.tokenizers.source.encode(sources), loaded.tokenizers.target.encode(references)
    scores = token_scores(loaded.model(pad_rows(rows, PAD, last=EOS), decoder_input(targets)), targets)
    counted = [one for row in scores for one in row]
    assert cost.loss_float32 == approx(-sum(counted) / len(counted))
    assert cost.loss != cost.loss_float32
    assert not cost.too_high


def test_an_export_that_costs_too_much_is_kept_only_by_force(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(export_cost, "_HIGHEST_LOSS_COST", -1.0)
    line = ["export", str(trained), "-o", str(tmp_path / "out"), "--to", "ctranslate2", "--quantization", "int8"]
    assert program(line) == 1
    message = capsys.readouterr().err
    assert "error: int8 costs " in message
    assert "was not kept. Use --quantization float32, or keep it with --force." in message
    assert list(tmp_path.iterdir()) == []
    assert program([*line, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"]["line"].startswith("int8 costs ")
    assert (tmp_path / "out" / "model.bin").is_file()
    assert "Use --quantization int8, or keep" in replace(COST, quantization="int16").refusal()


def test_a_wrong_conversion_is_refused_even_by_force(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The float32 export must give the results of the run: --force accepts only the cost of quantization."""
    from manyheads.interop.ctranslate2 import convert

    build_spec = convert.build_spec

    def wrong(model: Any, tokenizers: Any) -> Any:
        spec = build_spec(model, tokenizers)
        spec.config.layer_norm_epsilon *= 1000
        return spec

    monkeypatch.setattr(convert, "build_spec", wrong)
    with pytest.raises(ParityError, match="does not give what the run gives"):
        export(trained, tmp_path / "out", "ctranslate2", quantization="int8", force=True)
    assert list(tmp_path.iterdir()) == []


def test_the_cost_is_measured_on_the_device(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str] = []
    load = export_cost.load_ctranslate2

    def recording_load(folder: Path, *, device: str) -> Any:
        devices.append(device)
        return load(folder, device="cpu")

    monkeypatch.setattr(export_cost, "load_ctranslate2", recording_load)
    export(trained, tmp_path / "out", "ctranslate2", quantization="int8", device="cuda:1")
    assert devices == ["cuda:1", "cuda:1"]
