"""Examine every text model of the installed transformers, in the environment of an old release.

    python -m benchmarks.doctor_trial.release ROWS SECONDS [MODEL ...]

A row of JSON a model is appended to the file ROWS; a model may take SECONDS; without MODELs all are examined.
It needs torch, transformers and the doctor alone.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from benchmarks.doctor_trial import library_models, sound, trial


def main() -> None:
    rows, seconds = Path(sys.argv[1]), float(sys.argv[2])
    warnings.simplefilter("ignore")
    chosen = sys.argv[3:]
    models = [name for name in library_models.names() if not chosen or name in chosen]
    names = [f"library {name} / float32 own" for name in models]
    for _ in trial.run_cases(names, sound.sound_case, trial.Limits(seconds=seconds, jobs=1), rows):
        pass


if __name__ == "__main__":
    main()
