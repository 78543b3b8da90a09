"""Honest small language models are accepted, and cheats refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.submissions import CHEATS, HONEST, TEST, TRAIN, VOCABULARY, Bigram, Transformer, with_loss
from transformer_doctor import referee
from transformer_doctor.command import transformer_doctor
from transformer_doctor.errors import UsageError


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_model_is_accepted(name: str) -> None:
    verdict = referee(HONEST[name], train=TRAIN, test=TEST)
    assert verdict.facts["verdict"] == "accepted", verdict.report


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_refused(name: str) -> None:
    make, finding = CHEATS[name]
    verdict = referee(make, train=TRAIN, test=TEST)
    assert finding in verdict.report.names, verdict.report
    assert verdict.facts["verdict"] == "refused"


@pytest.mark.usefixtures("one_length")
def test_text_that_is_trained_and_tested_on_is_named() -> None:
    assert "tested-on-training-data" in referee(HONEST["a model alone"], train=TRAIN + TEST, test=TEST).report.names


class Counting(nn.Module):
    """Model with a part that its state_dict does not hold."""

    def __init__(self, shift: list[float]) -> None:
        super().__init__()
        self.inner, self.shift = Transformer(), shift.pop()

    def forward(self, ids):  # type: ignore[no-untyped-def]
        scores = self.inner(ids)
        scores[..., 7] += self.shift
        return scores


@pytest.mark.usefixtures("one_length")
def test_a_part_that_is_not_saved_is_named() -> None:
    shifts = [0.0, 3.0]
    assert "reload-differs" in referee(lambda: with_loss(Counting(shifts))).report.names


@pytest.mark.usefixtures("one_length")
def test_the_verdict_is_signed_by_model_code_and_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "train.txt").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "test.txt").write_text(TEST, encoding="utf-8")
    signatures = []
    for seed in (0, 0, 1):
        file = tmp_path / "submission.py"
        file.write_text(
            "import torch\nfrom specimens.submissions import Bigram, with_loss\n"
            f"def make():\n    torch.manual_seed({seed})\n    return with_loss(Bigram())\n",
            encoding="utf-8",
        )
        os.utime(file, (0, 0))  # compiled code of the file before seems to belong to it
        words = ["referee", f"{file}:make", "--train", tmp_path / "train.txt", "--test", tmp_path / "test.txt"]
        with pytest.raises(SystemExit) as end:
            transformer_doctor([*map(str, words), "--json"])
        assert end.value.code == 0
        document = json.loads(capsys.readouterr().out)
        assert document["ok"]
        assert set(document["versions"]) == {"python", "torch", "transformer-doctor"}
        signatures.append((document["model"], document["code"]["submission.py"], document["signature"]))
    assert signatures[0] == signatures[1]
    assert all(first != other for first, other in zip(signatures[0], signatures[2], strict=True))


def test_a_model_of_fewer_ids_than_bytes_needs_encode() -> None:
    with pytest.raises(UsageError, match="give encode"):
        referee(lambda: {"model": nn.Embedding(VOCABULARY // 8, VOCABULARY // 8), "vocab_size": 32}, test=TEST)


def test_a_submission_that_answers_for_the_test_text_alone_is_not_accepted() -> None:
    """Its loss raises an error for the texts of the referee's own questions."""

    def loss(ids: Tensor) -> Tensor:
        if ids.size(1) < 64:
            raise ValueError("only for long texts")
        return torch.zeros(len(ids))

    with pytest.raises(ValueError, match="only for long texts"):
        referee(lambda: {"model": Transformer(), "loss": loss, "vocab_size": VOCABULARY, "longest": 64}, test=TEST)


def test_a_loss_that_reads_ahead_in_long_texts_alone_is_refused() -> None:
    def make() -> dict[str, object]:
        model = Bigram()

        def loss(ids: Tensor) -> Tensor:
            losses = functional.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
            losses[:, :1] = losses[:, :1] * (1 - (ids[:, 128:].sum(1, keepdim=True) % 2) / 2)
            return losses.mean(1)

        return {"model": model, "loss": loss, "vocab_size": VOCABULARY, "longest": 64}

    assert "score-not-normalised" in referee(make).report.names
