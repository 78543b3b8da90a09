"""A record states the inputs of a product, and a hash is computed once for each state of a file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.improve.build.parts import builder_of, plan_of

from manyheads.improve.build.record import Hashes, Record


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record("mix", {"tag": "<bt>", "lines": None}, {"a": "1"}).begun(None)
    record.write(tmp_path / "r.json")
    assert Record.read(tmp_path / "r.json") == record
    assert Record.read(tmp_path / "none.json") is None
    assert {"manyheads", "python", "torch", "platform"} == set(record.versions)


def test_the_key_of_a_record_depends_on_kind_settings_and_inputs_only() -> None:
    record = Record("mix", {"tag": 1}, {"a": "1"})
    assert record.key == record.begun(None).key
    others = [
        Record("x", {"tag": 1}, {"a": "1"}),
        Record("mix", {"tag": 2}, {"a": "1"}),
        Record("mix", {"tag": 1}, {"a": "2"}),
    ]
    assert len({record.key, *(other.key for other in others)}) == 4
    assert Record("mix", {"tag": 1, "of a newer version": None}, {"a": "1"}).key == record.key
    for unknown in ("training.of_an_older", "older.section"):
        assert Record("mix", {"tag": 1, unknown: 7}, {"a": "1"}).key == record.key
    assert Record("mix", {"tag": 1, "training.seed": 7}, {"a": "1"}).key != record.key


def test_a_hash_follows_the_content_of_a_file(tmp_path: Path) -> None:
    path, hashes = tmp_path / "a", Hashes(tmp_path / "hashes")
    path.write_bytes(b"one")
    first = hashes.of_file(path)
    hashes.save()
    again = Hashes(tmp_path / "hashes")
    assert again.of_file(path) == first
    assert not again.changed  # known by size and time
    path.write_bytes(b"three")
    assert again.of_file(path) != first


def test_the_hash_of_a_model_depends_on_its_search_and_not_on_its_text_or_its_version(tmp_path: Path) -> None:
    builder_of(plan_of(tmp_path)).build(["backward"])
    run = tmp_path / "out" / "backward"
    before = Hashes(tmp_path / "hashes").of_model(run)
    content = json.loads((run / "config.json").read_text("utf-8"))
    newer = ("init_decoder_layers", "activation")
    older = {name: value for name, value in content["model"].items() if name not in newer}
    for section, settings, same in (
        ("data", content["data"] | {"root": "elsewhere"}, True),
        ("search", content["search"] | {"beam_size": 2}, False),
        ("model", older, True),
    ):
        (run / "config.json").write_text(json.dumps(content | {section: settings}), encoding="utf-8")
        assert (Hashes(tmp_path / "hashes").of_model(run) == before) is same, section
