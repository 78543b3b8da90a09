"""Workflows run commands that exist, with few permissions; issue forms have the fields that GitHub requires."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.portable import ROWS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".github"
WORKFLOWS = sorted(FOLDER.glob("workflows/*.yml"))


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def jobs(path: Path) -> list[dict[str, Any]]:
    return list(read(path)["jobs"].values())


def commands(path: Path) -> list[str]:
    return [step["run"] for job in jobs(path) for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_is_cancelled_by_the_next_run(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    assert True in workflow  # the key `on`, as YAML 1.1 reads it
    for job in jobs(path):
        assert job.get("permissions", {}) == ({"id-token": "write"} if job.get("environment") == "release" else {})
        assert job["timeout-minutes"] <= 90


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_official_and_pinned_to_a_major_version(path: Path) -> None:
    for step in [step for job in jobs(path) for step in job["steps"]]:
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+|pypa/gh-action-pypi-publish@release/v1", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        if step.get("uses", "").startswith("actions/setup-python@"):
            assert step["with"]["cache"] == "pip"
            assert (ROOT / step["with"]["cache-dependency-path"]).is_file()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_commands_of_a_workflow_name_targets_and_tests_that_exist(path: Path) -> None:
    makefile = (
        (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(READY_FOR_TESTS)", ".venv/.ready-for-tests")
    )
    for command in commands(path):
        for target in re.findall(r"make ([\w./-]+)", command):
            assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target
        for name in re.findall(r"(?<![\w/])tests/[\w/.]+", command):
            assert (ROOT / name).exists(), name
        for file, test in re.findall(r"--deselect=([\w/.]+)::(\w+)", command):
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), test
        for name in re.findall(r'--only "(.+?)"', command):
            assert [row.name for row in ROWS if name in row.name and not row.compiler]


def test_only_a_tag_publishes_what_was_built_and_tried_and_has_its_version() -> None:
    path = FOLDER / "workflows" / "publish.yml"
    build, publish = jobs(path)
    assert "github.ref_type == 'tag'" in publish["if"]
    assert publish["needs"] == "build"
    assert not [step for step in publish["steps"] if "run" in step]
    assert "secrets." not in path.read_text(encoding="utf-8")
    check, release = (step["run"] for step in build["steps"] if "run" in step)
    assert release.endswith(".ci/release")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for tag, code in ((f"v{version}", 0), (f"v{version}.1", 1), (version.replace(".", "x"), 1)):
        environment = {**os.environ, "GITHUB_REF_NAME": tag}
        assert subprocess.run(["bash", "-ec", check], cwd=ROOT, env=environment).returncode == code, tag


@pytest.mark.parametrize(("workflow", "job"), [("tests", "linux"), ("portable", "pythons")])
def test_every_python_that_is_promised_is_tested(workflow: str, job: str) -> None:
    versions = read(FOLDER / "workflows" / f"{workflow}.yml")["jobs"][job]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    for folder in (ROOT, ROOT / "packages" / "bitext", ROOT / "packages" / "transformer-doctor"):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["requires-python"] == f">={versions[0]}"
        named = [name.split(" :: ")[-1] for name in project["classifiers"] if " Python :: " in name]
        assert named == versions[: len(named)] != []
