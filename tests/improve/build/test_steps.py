"""Each kind of step makes its product; a killed build ends with the same bytes (benchmarks/build.py kills)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.improve.build.parts import builder_of, plan_of

from bitext.sources import TextSource, read_sources, write_sources
from manyheads.improve.build.record import Record
from manyheads.improve.build.steps import run_step

MORE = """
[steps.forward]
kind = "train"
text = ["parallel", "back"]
valid = "parallel"
data = { drop_overlap = false }
tokenizer = { kind = "characters" }
model = { d_model = 8, d_ff = 8, num_heads = 2, num_encoder_layers = 2, num_decoder_layers = 1 }

[steps.forward.training]
steps = 3
batch_tokens = 60
valid_sentences = 0
stages = [{ steps = 2, weights = [0, 1] }, { weights = [1, 0] }]

[steps.forward.search]
max_length_ratio = 1
max_length_offset = 1

[steps.distilled]
kind = "distil"
model = ["forward"]
text = "parallel"
method = "interpolation"
beam = 2

[steps.tuned]
kind = "fine-tune"
start = "forward"
text = "distilled"
valid = "parallel"
data = { drop_overlap = false }
training = { steps = 1, batch_tokens = 60, valid_sentences = 0 }

[steps.page]
kind = "export"
model = "tuned"
to = "html"
quantization = "float32"

[steps.scores]
kind = "evaluate"
model = "tuned"
text = "parallel"
beam = 1
"""


def test_every_kind_of_step_makes_its_product(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, more=MORE)
    source = TextSource("train.tmx", "TMX", {}, 12, 0, "CC BY 2.0", "tatoeba.org")
    write_sources(tmp_path / "train.sources.json", [source])
    builder = builder_of(plan)
    builder.build()
    out = tmp_path / "out"
    assert (out / "mixed" / "text.de").read_text("utf-8").count("<bt> ") == 7
    assert len((out / "distilled" / "text.en").read_text("utf-8").split("\n")) == 13
    assert (out / "distilled" / "text.de").read_bytes() == (tmp_path / "train.de").read_bytes()
    chosen = (out / "distilled" / "text.en").read_bytes()
    assert run_step(builder.context, "distilled", out / "distilled") == {"lines": 12}, "a kill before the record"
    assert (out / "distilled" / "text.en").read_bytes() == chosen
    assert (out / "page" / "model.html").read_text("utf-8").startswith("<!doctype html>")
    record = Record.read(builder.record_path("scores"))
    assert record is not None
    assert {"bleu", "chrf", "text", "sentences", "beam", "signature"} == set(record.result)
    assert plan.configs["tuned"].model.init_from == str(out / "forward")
    for text in ("back", "mixed", "distilled"):
        assert read_sources([out / text / "text.de"]) == [source]
    card = out / "tuned" / "README.md"
    assert source.line() in card.read_text("utf-8"), "the licence reaches the model card"
    run_step(replace(builder.context, language="ko"), "tuned", out / "tuned")
    assert "\n- 학습: " in card.read_text("utf-8")


def test_downloads_are_converted_and_cleaned(tmp_path: Path) -> None:
    more = """
[steps.downloads]
kind = "convert"
files = ["x.tsv"]

[steps.cleaned]
kind = "clean"
text = "downloads"
clean = { off = ["numbers", "language"] }
"""
    plan = plan_of(tmp_path, more=more)
    words = ["Haus", "Hund", "Katze", "Vogel", "Baum", "Tisch"]
    rows = [f"Das ist ein {word} im Garten\tThis is a {word.lower()} in the garden" for word in words]
    (tmp_path / "x.tsv").write_text("\n".join(["de\ten", *rows, rows[0]]) + "\n", encoding="utf-8")
    builder = builder_of(plan)
    builder.build(["downloads", "cleaned"])
    assert [status.reasons for status in builder.statuses(["downloads", "cleaned"]).values()] == [(), ()]
    record = Record.read(builder.record_path("cleaned"))
    assert record is not None
    assert record.result["pairs"] + record.result["removed"] == 7
    files = plan.files("cleaned", ["de", "en"])
    assert all(path.is_file() for path in files)
    assert read_sources(files) == read_sources(plan.files("downloads", ["de", "en"])) != []
