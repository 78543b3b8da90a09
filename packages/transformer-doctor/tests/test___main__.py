"""The program of the package, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import transformer_doctor


def test_the_program_prints_its_version_and_imports_no_torch_for_it() -> None:
    code = (
        "import sys; from transformer_doctor.__main__ import main; sys.argv[1:] = ['--version']\n"
        "try: main()\nfinally: print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == [transformer_doctor.__version__, "False"]


def test_without_click_the_program_names_its_extra() -> None:
    code = "import sys; sys.modules['click'] = None; from transformer_doctor.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "transformer-doctor[cli]"' in done.stderr
