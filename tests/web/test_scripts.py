"""The modules of the browser engine are joined into one equivalent script."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.web.text.browser import node

from manyheads.web import scripts
from manyheads.web.scripts import WEB, compact_script, joined_script


def run_node(script: str) -> str:
    return subprocess.run([node(), "-"], input=script, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "deep").mkdir()
    monkeypatch.setattr(scripts, "WEB", tmp_path)
    joined_script.cache_clear()
    return tmp_path


def test_modules_are_joined_in_dependency_order_and_keep_their_own_names(modules: Path) -> None:
    (modules / "deep/one.js").write_text("const SIZE = 1;\nexport const one = () => SIZE;\nexport class Kept {}\n")
    (modules / "two.js").write_text(
        'import { one, Kept } from "./deep/one.js";\nconst SIZE = 2;\n'
        "export async function two() { return [one(), SIZE, typeof Kept]; }\n"
    )
    (modules / "entry.js").write_text(
        'import { two } from "./two.js";\nimport { one } from "./deep/one.js";\nconst SIZE = 3;\n'
        "two().then((found) => console.log(JSON.stringify([...found, one(), SIZE])));\n"
    )
    script = joined_script("entry.js")
    assert "import" not in script
    assert script.count("class Kept") == 1
    assert run_node(script) == '[1,2,"function",1,3]\n'


def test_circular_imports_are_refused(modules: Path) -> None:
    (modules / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (modules / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')
    with pytest.raises(ValueError, match=r"a\.js is imported by a module that it needs itself"):
        joined_script("a.js")


def test_the_worker_is_one_script_without_imports_that_can_be_embedded_in_a_page() -> None:
    joined_script.cache_clear()
    script = joined_script("worker.js")
    assert not [line for line in script.splitlines() if line.startswith(("import ", "export "))]
    assert "</script" not in script.lower()
    run_node(f"const self = {{}}; {script}")


def test_minifying_a_script_removes_only_blanks_and_comments() -> None:
    text = '/* a */\n  const a = [1, 2];\n  const b = "x , y"; // z\n  if (a > b) c = a => { d };\n'
    expected = '\nconst a=[1,2];\nconst b = "x , y"; // z\nif(a>b)c=a=>{d};\n'
    text += '/** Return x.\n    @type {X} */\nlet x = /** @type {Y} */ (1), s = "/* y */"; /* not alone */\n'
    expected += '\n\nlet x = (1), s = "/* y */"; /* not alone */\n'
    assert compact_script(text) == expected


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
