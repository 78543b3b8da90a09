"""The scripts in `web/built` are made from the modules as they are, and can be embedded in a page."""

from __future__ import annotations

import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from tests.web.text.browser import node

import bitext
from manyheads.web.scripts import BUILT, EXPLORER, MODEL_SCRIPTS, WEB, built_script, model_script


def test_no_module_was_changed_after_the_scripts_were_built() -> None:
    """Whether the scripts are those that esbuild makes of the modules, test_lint.py says where npm is installed."""
    lines = (BUILT / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {
        path.relative_to(WEB).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in WEB.rglob("*.js")
        if path.parent != EXPLORER and path.name not in MODEL_SCRIPTS
    }
    assert found == sums, "run: npm ci && npm run build"


def test_the_python_files_that_comments_name_exist() -> None:
    roots = (WEB.parent, WEB.parent.parent, Path(bitext.__file__).parent.parent)
    sources = [path for path in (*WEB.rglob("*.js"), WEB / "types.d.ts") if path.parent != BUILT]
    names = {name for path in sources for name in re.findall(r"[\w/]+/\w+\.py\b", path.read_text(encoding="utf-8"))}
    assert len(names) > 20
    assert [name for name in sorted(names) if not any((root / name).is_file() for root in roots)] == []


@pytest.mark.parametrize("name", ["page.js", "worker.js"])
def test_a_script_has_no_imports_and_can_be_embedded_in_a_page(name: str) -> None:
    script = model_script(name) if name in MODEL_SCRIPTS else built_script(name)
    assert not [line for line in script.splitlines() if line.startswith(("import ", "export "))]
    assert "</script" not in script.lower()
    assert "<!--" not in script
    subprocess.run([node(), "--check", "-"], input=script, check=True, text=True)


@pytest.mark.parametrize("browser", [False, True])
def test_pausing_computations_let_events_run_and_end(browser: bool) -> None:
    """Each iteration is long enough for a pause; browsers have no setImmediate."""
    script = f"""
      {"delete globalThis.setImmediate;" if browser else ""}
      const {{ makePause }} = await import("{(WEB / "tasks" / "pause.js").as_uri()}");
      const pause = makePause();
      const seen = [];
      setTimeout(() => seen.push("event"), 60);
      const busy = () => {{ for (const start = performance.now(); performance.now() - start < 45;); }};
      const turns = async () => {{ for (let turn = 0; turn < 5; turn++) {{ busy(); await pause(); }} }};
      const compute = () => turns().then(() => seen.push("end"));
      await Promise.all([compute(), compute()]);
      console.log(seen.join(" "));
      process.exit();
    """
    command = [node(), "--no-warnings", "--input-type=module", "-e", script]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert sorted(found.split()) == ["end", "end", "event"]
    assert browser or found.startswith("event")  # ports of Node.js come before its timers
