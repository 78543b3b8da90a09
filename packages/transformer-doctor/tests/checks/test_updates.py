"""Every defect of a training step, planted alone in public styles of code, is named; sound code has no finding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from specimens.plain_trainings import PLANTED as PLAIN
from specimens.plain_trainings import D, Writer, nats, writing
from specimens.training_projects import PROJECTS
from transformer_doctor import examine
from transformer_doctor.checks.learning import _UPDATES
from transformer_doctor.checks.step_tracer import FedIds
from transformer_doctor.checks.update_tracer import UpdateTracer
from transformer_doctor.checks.updates import UpdateRecord

PLANTED = {
    "annotated": (
        "parameters-without-gradient", "padding-in-mean", "padding-in-loss", "end-fed-to-decoder", "ignored-label",
    ),
    "nanogpt": ("parameters-not-updated", "accumulation-not-divided", "end-never-trained"),
    "bert": ("gradients-accumulated", "wrong-labels", "padding-row-trained"),
    "huggingface": ("first-loss-too-high", "no-source-padding-mask"),
}  # fmt: skip
OF_UPDATES = (
    "reshaped", "raw scores", "tiny rate", "weight decay of 1", "clipped to 1e-4", "clipped after the step",
    "micro-batches cleared", "micro-batches averaged", "micro-batches of two rows", "two start symbols",
    "layer redrawn", "bfloat16", "float16",
)  # fmt: skip


def examine_project(project: str, defect: str) -> list[str]:
    """Return the names of the findings that are no notes."""
    torch.manual_seed(1)
    made: Any = PROJECTS[project](defect)
    report = examine(**made.arguments())
    assert _UPDATES in report.asked
    return [finding.name for finding in report.findings if finding.severity != "note"]


@pytest.mark.usefixtures("one_length")
@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.filterwarnings("ignore")
def test_a_sound_project_has_no_finding(project: str) -> None:
    assert examine_project(project, "") == []


@pytest.mark.usefixtures("few_updates", "training_alone", "rows_unasked")
@pytest.mark.parametrize(
    ("project", "defect"), [(project, defect) for project, defects in PLANTED.items() for defect in defects]
)
@pytest.mark.filterwarnings("ignore")
def test_a_planted_defect_is_named_without_others(project: str, defect: str) -> None:
    assert examine_project(project, defect) == [defect]


@pytest.mark.usefixtures("few_updates", "training_alone", "rows_unasked")
@pytest.mark.parametrize("defect", OF_UPDATES)
@pytest.mark.filterwarnings("ignore")
def test_a_defect_of_the_loss_or_of_an_update_is_named(defect: str) -> None:
    make, name = PLAIN[defect]
    report = examine(**make())
    assert [finding.name for finding in report.findings if finding.severity != "note" or finding.name == name] == [
        name
    ]


@pytest.mark.usefixtures("few_updates", "training_alone", "rows_unasked")
def test_a_rate_that_still_grows_from_zero_is_no_finding() -> None:
    given = PLAIN["tiny rate"][0]()
    optimizer = torch.optim.SGD(given["model"].parameters(), 1e-30)

    def train_step(source: Any, target: Any) -> float:
        optimizer.param_groups[0]["lr"] *= 2
        optimizer.zero_grad()
        loss = given["model"](source, target[:, :-1]).logsumexp(-1).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    assert "parameters-not-updated" not in examine(**{**given, "train_step": train_step}).names


@pytest.mark.parametrize("ends", [False, True])
def test_an_end_mark_with_the_id_of_padding_is_no_padding(ends: bool) -> None:
    ids = torch.tensor([[3, 4, 5, 6, 7, 0], [3, 4, 5, 6, 0, 0], [3, 4, 5, 0, 0, 0]])
    gradient = torch.tensor([[1.0] * 6, [1.0] * 5 + [0.0], [1.0] * 4 + [0.0] * 2])  # up to the end marks
    record, fed = UpdateRecord(UpdateTracer({})), FedIds(ids, 1, 0, gradient=gradient)
    record.add([fed], [fed], None, 0, ends=ends)
    assert record.source_padding == (0.0 if ends else 1.0)
    gradient[-1, -1] = 1.0
    record.add([fed], [fed], None, 0, ends=ends)
    assert record.source_padding == 1.0


@pytest.mark.usefixtures("few_updates", "training_alone", "rows_unasked")
@pytest.mark.parametrize(("held", "names"), [("used", []), ("unused", ["parameters-without-gradient"])])
def test_trained_adapters_of_layers_that_no_score_depends_on_are_named(held: str, names: list[str]) -> None:
    model = Writer().requires_grad_(False)
    model.adapter = torch.nn.Linear(D, 3 * D)
    model.head.bias.requires_grad_(True)
    hook = lambda module, args, result: result + model.adapter(args[0])  # noqa: E731
    if held == "used":
        model.qkv.register_forward_hook(hook)
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], 1e-2)

    def train_step(ids: Any) -> float:
        optimizer.zero_grad()
        loss = nats(model(ids[:, :-1]), ids[:, 1:])
        loss.backward()
        optimizer.step()
        return loss.item()

    report = examine(**{**writing(), "model": model, "train_step": train_step})
    assert [finding.name for finding in report.findings if finding.severity != "note"] == names
