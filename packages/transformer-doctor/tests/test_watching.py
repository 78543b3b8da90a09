"""Watching a training: faults are named while it runs, sound trainings draw nothing, and no bit is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from specimens.watched_trainings import PLANTED, SOUND, V, Writer, nats, rows
from transformer_doctor import Finding, lightning_callback, trainer_callback, watch
from transformer_doctor.errors import UsageError

FAULTS = [(style, fault, name) for style, (_, faults) in PLANTED.items() for fault, name in faults.items()]
UPDATES, LAST_EXAMINED, MORE_UPDATES, AT_LEAST = 20, 17, 66, 5

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*lr_scheduler.step:UserWarning", "ignore:.*nested tensor.*:UserWarning"
)


class Stopped(Exception):
    pass


def watched_findings(style: str, fault: str, updates: int) -> dict[str, Finding]:
    """Return the findings in the first updates of a training: five, and more until there is one."""
    training = (PLANTED if style in PLANTED and fault in PLANTED[style][1] else SOUND)[style][0](fault)
    if style == "transformers":
        pytest.importorskip("transformers")
    model, optimizers, options = next(training)
    with watch(model, optimizers, on_finding=lambda finding: None, **options) as watched:
        for update in range(updates):
            if update >= AT_LEAST and watched.findings:
                break
            next(training)
    assert not watched.failure
    return watched.findings


@pytest.mark.parametrize(("style", "fault", "name"), FAULTS)
def test_a_fault_is_named_within_twenty_updates(style: str, fault: str, name: str) -> None:
    findings = watched_findings(style, fault, UPDATES)
    assert [*findings] == [name]
    assert "at update" in findings[name].evidence
    assert findings[name].check
    assert findings[name].place is not None
    assert Path(findings[name].place.path).name in ("watched_trainings.py", "test_watching.py")


@pytest.mark.parametrize(
    ("style", "fault"), [(style, fault) for style, (_, all_) in SOUND.items() for fault in all_]
)
def test_a_sound_training_draws_nothing(style: str, fault: str) -> None:
    """Every 64th update is examined again."""
    further = style == "published" or (style, fault) == ("loop", "six batches, shuffled")
    assert not watched_findings(style, fault, MORE_UPDATES if further else LAST_EXAMINED)


@pytest.mark.parametrize("style", SOUND)
def test_a_watched_training_has_the_same_bits(style: str) -> None:
    """Even where weights without a gradient are tried with other values, at update 8."""
    if style == "transformers":
        pytest.importorskip("transformers")
    training, styles = SOUND[style]
    models: list[nn.Module] = []
    states = []
    for watches in (False, True):
        loop = training("detached" if style == "loop" else styles[0])
        model, optimizers, options = next(loop)
        watched = watch(model, optimizers, on_finding=lambda finding: None, **options)
        if watches:
            watched.start()
        for _ in range(10):
            next(loop)
        watched.stop()
        models.append(model)
        states.append(torch.get_rng_state())
    assert all(
        torch.equal(left, right)
        for left, right in zip(*(model.state_dict().values() for model in models), strict=True)
    )
    assert torch.equal(*states)
    assert [part.training for part in models[0].modules()] == [part.training for part in models[1].modules()]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in models[1].modules())


def test_a_finding_is_told_at_once_and_once_and_may_stop_the_training() -> None:
    told: list[str] = []

    def stop(finding: Finding) -> None:
        told.append(finding.name)
        raise Stopped

    training = SOUND["loop"][0]("not shifted")
    model, optimizer, options = next(training)
    with pytest.raises(Stopped), watch(model, optimizer, on_finding=stop, **options) as watched:
        next(training)
    assert told == ["target-not-shifted"] == [*watched.findings]


def test_a_finding_is_a_warning_by_default() -> None:
    model = Writer()
    with pytest.warns(UserWarning, match="no optimizer holds words.weight"):
        watch(model, torch.optim.SGD(model.layers.parameters(), 0.1)).start()


def test_the_report_says_what_was_not_looked_at() -> None:
    model = Writer()
    report = watch(model, torch.optim.SGD(model.parameters(), 0.1)).report
    assert report.ok
    assert not report.asked
    assert ("batches and their order differ", "no token ids were seen, or repeats was given") in report.skipped


def test_an_error_of_the_watch_ends_the_watch_alone() -> None:
    training = SOUND["loop"][0]("plain")
    model, optimizer, _ = next(training)

    def plan(update: int) -> float:
        raise ZeroDivisionError("no plan")

    with watch(model, optimizer, plan=plan) as watched:
        next(training)
        next(training)
    assert "ZeroDivisionError" in dict(watched.report.skipped)["every trained weight is updated, and no other one"]


def test_something_else_than_an_optimizer_is_refused() -> None:
    model = Writer()
    with pytest.raises(UsageError, match="Writer is no optimizer"):
        watch(model, [torch.optim.SGD(model.parameters(), 0.1), model])


@pytest.mark.parametrize(("fault", "name"), [("", None), ("not shifted", "target-not-shifted")])
def test_the_parts_that_a_step_calls_are_watched_where_the_model_itself_is_not_called(
    fault: str, name: str | None
) -> None:
    """A LightningModule has training_step(); its parts are called, not its forward()."""

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.writer, self.loss = Writer(), nn.CrossEntropyLoss(ignore_index=0)

        def training_step(self, ids: torch.Tensor) -> torch.Tensor:
            labels: torch.Tensor = ids[:, :-1] if fault else ids[:, 1:]
            loss: torch.Tensor = self.loss(self.writer(ids[:, :-1]).transpose(1, 2), labels)
            return loss

    model = Module()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with watch(model, optimizer, on_finding=lambda finding: None) as watched:
        for update in range(4):
            optimizer.zero_grad()
            model.training_step(rows(update)).backward()
            optimizer.step()
    assert [*watched.findings] == ([name] if name else [])
    assert "the loss of the training reads the right positions" in watched.report.asked


@pytest.mark.parametrize(("fault", "name"), [("", None), ("not shifted", "target-not-shifted")])
def test_scores_that_are_copied_after_the_loss_are_read(fault: str, name: str | None) -> None:
    """With bf16=True, Accelerate returns copies of the scores in float32."""
    model = Writer()
    forward = model.forward

    def autocast(ids: torch.Tensor, targets: torch.Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            scores, loss = forward(ids, targets)
        return scores.float(), loss

    model.forward = autocast  # type: ignore[method-assign]
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with watch(model, optimizer, on_finding=lambda finding: None) as watched:
        for update in range(4):
            ids = rows(update)
            optimizer.zero_grad()
            model(ids[:, :-1], ids[:, :-1] if fault else ids[:, 1:])[1].backward()
            optimizer.step()
    assert [*watched.findings] == ([name] if name else [])
    assert "the loss of the training reads the right positions" in watched.report.asked


def test_the_trainer_of_transformers_is_watched(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    config = transformers.GPT2Config(vocab_size=V, n_embd=16, n_layer=1, n_head=2, pad_token_id=0)
    data = [{"input_ids": row, "labels": row.masked_fill(row == 0, -100)} for row in rows(1, 64)]
    callback = trainer_callback(on_finding=lambda finding: None)
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=20, save_steps=10, eval_strategy="steps", eval_steps=8, warmup_steps=5,
        gradient_accumulation_steps=2, report_to=[], use_cpu=True,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data[:8], callbacks=[callback]).train()
    assert not callback.watched.findings


def test_lightning_is_watched() -> None:
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.writer = Writer()

        def training_step(self, ids: torch.Tensor, number: int) -> torch.Tensor:
            return nats(self.writer(ids[:, :-1]), ids[:, :-1])

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), 1e-3)

    callback = lightning_callback(on_finding=lambda finding: None)
    trainer = lightning.Trainer(max_steps=4, accelerator="cpu", callbacks=[callback], logger=False,
                                enable_checkpointing=False, enable_progress_bar=False)  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(rows(1, 64), 8))
    assert [*callback.watched.findings] == ["target-not-shifted"]
