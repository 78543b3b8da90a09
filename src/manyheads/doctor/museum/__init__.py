"""The museum: 18 defects, each a small program of its own that shows what a person sees and what is wrong.

A program holds its wrong line and, in the comment below it, the line that mends it. It is run as it stands, then
examined by the doctor, and both again with that one line replaced.
"""

from manyheads.doctor.museum.stage import Exhibit, Performance, Visit, exhibit, exhibits, perform, played, visit
from manyheads.doctor.texts import LANGUAGES, Language

__all__ = [
    "LANGUAGES",
    "Exhibit",
    "Language",
    "Performance",
    "Visit",
    "exhibit",
    "exhibits",
    "perform",
    "played",
    "visit",
]
