"""The direction of a translator of several languages: which one two codes mean, and what its targets begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.runs.parts import make_config, make_languages_config, write_languages
from tests.tasks.test_preparation import all_batches, updates
from tests.tolerances import within

from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.tasks.batch_sources import CorpusUpdates
from manyheads.tasks.corpus import read_corpus
from manyheads.tasks.directions import choose_direction, list_directions
from manyheads.text.tokenizer import BOS
from manyheads.training.distributed import ALONE, World

DIRECTIONS = [("en", "de"), ("de", "en"), ("en", "fr")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_languages(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("", "fr", ("en", "fr")),
        ("de", "", ("de", "en")),
        ("en", "de", ("en", "de")),
        ("EN", "fr-FR", ("en", "fr")),
        ("de", "fr", ("de", "fr")),  # not trained
    ],
)
def test_two_codes_choose_a_direction(tmp_path: Path, source: str, target: str, expected: tuple[str, str]) -> None:
    assert choose_direction(make_languages_config(tmp_path), source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "", "several directions fit: en-de, de-en, en-fr. Name the target language."),
        ("en", "", "several directions fit: en-de, en-fr. Name the target language."),
        ("", "it", 'the model does not write "it". It translates en-de, de-en, en-fr.'),
        ("fr", "en", 'the model does not read "fr". It translates en-de, de-en, en-fr.'),
        ("de", "de", "from de to de there is nothing to translate. It translates en-de, de-en, en-fr."),
    ],
)
def test_a_direction_that_the_model_does_not_have_is_refused(
    tmp_path: Path, source: str, target: str, message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        choose_direction(make_languages_config(tmp_path), source, target)
    assert str(raised.value) == message


def test_a_model_of_one_direction_takes_its_own_languages_alone(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    assert list_directions(config) == "de-en"
    assert choose_direction(config, "", "en") == ("de", "en")
    with pytest.raises(UsageError, match=r"has one direction, not any to fr\. It translates de-en\."):
        choose_direction(config, "", "fr")


# --- text and batches ---


def sides_of(found: CorpusUpdates, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the stored pairs of a direction."""
    corpus, (sources, targets) = DIRECTIONS.index(languages), found.maker.texts.sides()
    rows = np.flatnonzero(found.maker.texts.corpora == corpus)
    return [(sources[row], targets[row]) for row in rows.tolist()]


def test_both_directions_of_a_pair_are_read_from_the_same_text(corpus: Path, tmp_path: Path) -> None:
    """Also from one file with a column for each language."""
    lines = zip(*((corpus / f"train.{code}").read_text("utf-8").splitlines() for code in ("en", "de")), strict=True)
    (tmp_path / "train.tsv").write_text("".join(f"{en}\t{de}\n" for en, de in lines), encoding="utf-8")
    pairs = [
        {"source": "en", "target": "de", "both": True, "train": str(tmp_path / "train.tsv")},
        {"source": "en", "target": "fr"},
    ]
    for number, config in enumerate(
        (make_languages_config(corpus), make_languages_config(corpus, data={"pairs": pairs}))
    ):
        found = updates(config, tmp_path / str(number))
        forward, backward = sides_of(found, ("en", "de")), sides_of(found, ("de", "en"))
        assert len(forward) == 36
        assert backward == [(target, source) for source, target in forward]
        assert {source for source, _ in sides_of(found, ("en", "fr"))} == {source for source, _ in forward}


def test_no_direction_trains_on_what_another_holds_out(corpus: Path, tmp_path: Path) -> None:
    folder = write_languages(tmp_path / "corpus")
    held = [(folder / f"valid.{code}").read_text("utf-8").splitlines()[0] for code in ("de", "en")]
    for code, line in zip(("de", "en"), held, strict=True):
        with (folder / f"leak.{code}").open("w", encoding="utf-8") as file:
            file.write(f"{line}\nein Satz mehr\n")
    pairs = [
        {"source": "de", "target": "en", "train": "leak"},
        {"source": "en", "target": "de", "train": "leak", "valid": "test"},  # does not hold the pair out itself
    ]
    found = read_corpus(make_languages_config(folder, data={"pairs": pairs}), tmp_path / "run")
    assert [counts.overlap for counts in found.counts] == [1, 1]
    assert len(found.train) == 2


def test_every_target_begins_with_the_symbol_of_its_language(corpus: Path, tmp_path: Path) -> None:
    found = updates(make_languages_config(corpus, tokenizer={"sampling": 0.2}), tmp_path)
    tokenizer = found.maker.tokenizers.target
    assert set(tokenizer.reserved) == {"<to-de>", "<to-en>", "<to-fr>"}
    expected = {
        (source, target): f"<to-{languages[1]}>"
        for languages in DIRECTIONS
        for source, target in sides_of(found, languages)
    }
    for (batch,) in all_batches(found, 0):
        for source, target_in, target_out in zip(batch.source, batch.target_in, batch.target_out, strict=True):
            symbol, text = tokenizer.pieces([target_in[1]])[0], tokenizer.decode(target_out.tolist())
            assert target_in[0] == BOS
            assert symbol == expected[tokenizer.decode(source.tolist()), text]
            assert target_out[0] == target_in[1]  # it is learned, so that it hardly changes the score of an output


def test_what_a_user_types_is_no_symbol_of_a_language(corpus: Path, tmp_path: Path) -> None:
    tokenizer = updates(make_languages_config(corpus), tmp_path).maker.tokenizers.source
    (ids,) = tokenizer.encode(["<to-fr> the dog"])
    assert not {*ids} & {*tokenizer.reserved.values()}


def test_an_update_is_the_same_whatever_the_number_of_processes(corpus: Path, tmp_path: Path) -> None:
    config = make_languages_config(corpus, tokenizer={"sampling": 0.2}, training={"batch_tokens": 1_000})
    alone = updates(config, tmp_path, ALONE)
    shared = [updates(config, tmp_path, World(rank, 2)) for rank in (0, 1)]
    pairs = alone.epoch(1)[0]
    assert {*alone.maker.texts.corpora[alone.maker.store.rows[pairs]].tolist()} == {0, 1, 2}  # directions are mixed

    def rows(found: CorpusUpdates) -> list[tuple[int, ...]]:
        return [tuple(row[row != 1].tolist()) for batch in found.batches(1, 0, pairs) for row in batch.target_in]

    assert sorted(rows(alone)) == sorted(rows(shared[0]) + rows(shared[1]))
    (batch,), (again,) = alone.batches(1, 0, pairs), updates(config, tmp_path, ALONE).batches(1, 0, pairs)
    assert torch.equal(batch.target_in, again.target_in)


@pytest.mark.parametrize(
    ("data", "weights", "shares"),
    [
        ({}, (1, 1), (36, 6)),
        ({}, (1, 3), (36, 18)),
        ({"temperature": 2.0}, (1, 1), (42 * 6 / (6 + 6**0.5), 42 * 6**0.5 / (6 + 6**0.5))),
        ({"temperature": 100.0}, (1, 1), (21, 21)),
    ],
)
def test_weight_and_temperature_set_how_often_a_direction_is_drawn(
    corpus: Path, tmp_path: Path, data: dict[str, Any], weights: tuple[float, float], shares: tuple[float, float]
) -> None:
    pairs = [
        {"source": "en", "target": "de", "weight": weights[0]},
        {"source": "en", "target": "fr", "weight": weights[1], "train": "valid", "valid": "test"},
    ]
    config = make_languages_config(corpus, data={"pairs": pairs, "drop_overlap": False, **data})
    found = updates(config, tmp_path)
    corpora = found.maker.texts.corpora[found.maker.store.rows]
    drawn = np.zeros(2)
    for epoch in range(60):
        drawn += np.bincount(corpora[np.concatenate(list(found.epoch(epoch)))], minlength=2) / 60
    assert drawn[0] == within(shares[0], 1.5)
    assert drawn[1] == within(shares[1], 1.5)


def test_a_direction_has_the_settings_of_its_table_and_those_of_all() -> None:
    config = make_languages_config(Path(), data={"train": "all", "pairs": [
        {"source": "en", "target": "de", "both": True, "train": "own", "more": ["web"], "test": ["a.en", "a.de"]},
        {"source": "en", "target": "fr"},
    ]})  # fmt: skip
    views: list[Config] = config.for_directions()
    assert [(view.data.train, view.data.more, view.data.swapped) for view in views] == [
        ("own", ("web",), False), ("own", ("web",), True), ("all", (), False),
    ]  # fmt: skip
    assert config.for_direction("de", "fr").data.train == "all"
    assert not config.for_direction("de", "fr").data.pairs
    assert config.data.corpus_names == ["en-de: own", "en-de: web", "de-en: own", "de-en: web", "en-fr: all"]
