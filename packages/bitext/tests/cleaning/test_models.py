"""Learned models are restored exactly from their file; a worker without the file says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bitext.cleaning.codes import encode_lines
from bitext.cleaning.lexicon import learn_lexicons
from bitext.cleaning.models import load_lexicons, load_profile, pack_lexicons, pack_profile
from bitext.cleaning.rules import learn_profile
from bitext.errors import DataError
from dirty_pairs import clean_pairs


def test_profile_and_lexicons_survive_saving_and_loading(tmp_path: Path) -> None:
    sources, targets = map(list, zip(*clean_pairs(200), strict=True))
    profile = learn_profile(sources, targets, ("de", "en"))
    (tmp_path / "profile.npz").write_bytes(pack_profile(profile))
    read = load_profile(tmp_path / "profile.npz")
    assert (read.character_ratio, read.cut_at_end) == (profile.character_ratio, profile.cut_at_end)
    for loaded_model, model in zip(read.models, profile.models, strict=True):
        assert (loaded_model.names, loaded_model.scripts) == (model.names, model.scripts)
        assert np.array_equal(loaded_model.weights, model.weights)
    lexicons = learn_lexicons(encode_lines(sources), encode_lines(targets))
    (tmp_path / "lexicon.npz").write_bytes(pack_lexicons(lexicons))
    for loaded, written in zip(load_lexicons(tmp_path / "lexicon.npz"), lexicons, strict=True):
        assert all(np.array_equal(vars(loaded)[name], vars(written)[name]) for name in vars(written))


def test_a_worker_without_the_file_says_where_it_must_be(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"nothing\.npz cannot be read by a worker .* a disk that all of them share"
    ):
        load_profile(tmp_path / "nothing.npz")
    with pytest.raises(DataError, match=r"cannot be read by a worker .* This is a folder: name a file"):
        load_profile(tmp_path)
