"""Load and examine the model that FILE.py:NAME, package.module:NAME or a Hugging Face folder names."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

from transformer_doctor.errors import UsageError, describe_error, is_for_users, is_from_user, require

if TYPE_CHECKING:
    from transformer_doctor.progress import Listener
    from transformer_doctor.report import Diagnosis, Finding

# FILE.py:NAME or package.module:NAME.
_SUBJECT = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[\w.]*))?|(?P<module>[A-Za-z_][\w.]*):(?P<member>[\w.]*)")
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json")


@dataclass(frozen=True)
class ModelOptions:
    """Options of `doctor` for a model; None where an option was not given.

    Attributes:
        vocab_size: number of ids, or (source, target).
        pad, bos, eos: ids of padding and of the marks.
        kind: encoder-decoder, encoder or decoder.
        quick: leave out the checks that train.
    """

    vocab_size: int | tuple[int, int] | None = None
    pad: int | None = None
    bos: int | None = None
    eos: int | None = None
    kind: Literal["encoder-decoder", "encoder", "decoder"] | None = None
    quick: bool = False

    def specified(self) -> dict[str, Any]:
        """Return the specified options, by name."""
        return {name: value for name, value in vars(self).items() if value is not None and value is not False}

    def refuse(self) -> None:
        """Raise a UsageError if an option was given, because the subject is no model."""
        if self.specified():
            names = ", ".join(f"--{name.replace('_', '-')}" for name in self.specified())
            raise UsageError(f"{names}: only a model takes this: FILE.py:NAME or a Hugging Face folder.")


def is_model(subject: str) -> bool:
    """Return whether a subject names a model: FILE.py:NAME, package.module:NAME, or a Hugging Face folder."""
    return _SUBJECT.fullmatch(subject) is not None or _is_huggingface_folder(Path(subject))


def _is_huggingface_folder(folder: Path) -> bool:
    """Return whether a folder holds a model of transformers rather than a run."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and ("model_type" in config or "architectures" in config)


def examine_model(subject: str, options: ModelOptions, device: str | None, listener: Listener) -> Diagnosis:
    """Examine the model that a subject names."""
    from transformer_doctor import examine
    from transformer_doctor.guesses import guess_missing_marks
    from transformer_doctor.model_adapter import find_modules
    from transformer_doctor.module_state import weight_count
    from transformer_doctor.report import Diagnosis, make_report

    with listener.phase("loading the model"), _watched_loading() as not_loaded:
        arguments = _load(subject)
    keywords = {**arguments, **options.specified()}
    remarks: list[str] = []
    module = find_modules(arguments["model"])
    size = keywords.get("vocab_size")
    if size is not None and not Path(subject).is_dir():  # without a size, examine guesses the marks
        known = {name: keywords.get(name) for name in ("pad", "bos", "eos")}
        marks, remarks = guess_missing_marks(
            arguments["model"], module, known, size if isinstance(size, int) else min(size)
        )
        keywords |= {name: mark for name, mark in marks.items() if known[name] is None and mark is not None}
    if device is not None and module is not None:
        module.to(device)
    with _errors_of(f"the functions of {subject}"):
        report = examine(**keywords, listener=listener)
    report += make_report(not_loaded[:1], [], [], remarks)
    fact = f"{type(module or arguments['model']).__name__}, {weight_count(module):,} parameters"
    return Diagnosis({"model": fact}, report, {"subject": subject, "facts": {"model": fact}})


@contextmanager
def _watched_loading() -> Iterator[list[Finding]]:
    """Collect findings about state dictionaries that are loaded with other names than those of the weights."""
    from torch import nn

    from transformer_doctor.catalogue import model_finding

    findings: list[Finding] = []
    plain = nn.Module.load_state_dict

    def load(module: nn.Module, *args: Any, **options: Any) -> Any:
        missing, unexpected = result = plain(module, *args, **options)
        if missing and unexpected:  # a new head alone is left as it is on purpose
            evidence = f"a loaded state lacks {missing[0]} (of {len(missing)} weights), and has {unexpected[0]}"
            findings.append(model_finding("weights-not-loaded", evidence))
        return result

    with patch.object(nn.Module, "load_state_dict", load):
        yield findings


def judge_model(subject: str, options: ModelOptions, train: Path | None, test: Path | None) -> Diagnosis:
    """Judge the language model that FILE.py:NAME makes; see `referee`.

    Raises:
        UsageError: the model cannot be loaded, a text is not UTF-8, or it is not clear how to call the model.
    """
    from transformer_doctor.judging import referee

    texts: list[str | None] = []
    for path in (train, test):
        try:
            texts.append(None if path is None else path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} is not UTF-8: {error}.") from error
    match = _SUBJECT.fullmatch(subject)
    code = [Path(match["file"])] if match and match["file"] else []
    with _errors_of(f"the functions of {subject}"):
        return referee(
            lambda: {**_load(subject), **options.specified()},
            train=texts[0], test=texts[1], code=[file for file in code if file.is_file()],
        )  # fmt: skip


@contextmanager
def _errors_of(origin: str) -> Iterator[None]:
    """Raise an error of a user's code, in which its traceback ends, as a UsageError with its location."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if is_for_users(error) or not is_from_user(error):
            raise
        raise UsageError(f"{origin} raised {describe_error(error)}.") from error


def _load(subject: str) -> dict[str, Any]:
    folder = Path(subject)
    return {"model": _load_folder(folder)} if folder.is_dir() else load_arguments(subject)


def _load_folder(folder: Path) -> Any:
    """Return the model of a Hugging Face folder, read from safetensors alone; no code in the folder runs.

    Raises:
        UsageError: the folder has no safetensors, or transformers cannot read it.
    """
    if not any(file for pattern in _WEIGHTS for file in folder.glob(pattern)):
        raise UsageError(
            f"{folder} has no weights as safetensors. A pickle (pytorch_model.bin) is a program that runs when it "
            "is read, so it is not read here: save the model with save_pretrained(..., safe_serialization=True)."
        )
    library = require("transformers", "the examination of a Hugging Face folder")
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = library.AutoConfig.from_pretrained(folder, **options)
        classes = [getattr(library, name) for name in config.architectures or () if hasattr(library, name)]
        return (classes or [library.AutoModel])[0].from_pretrained(folder, use_safetensors=True, **options)
    except Exception as error:  # transformers raises errors of many types
        message = str(error).strip().partition("\n")[0]
        raise UsageError(f"{folder}: transformers could not read the model: {message}") from error


def load_arguments(subject: str) -> dict[str, Any]:
    """Return the arguments of `examine` from a name in a file or module: a model, or a dictionary of arguments.

    A function without arguments and a class are called. The user's own code runs, as pytest runs it.

    Raises:
        UsageError: there is no such name, or the code raises an error.
    """
    import torch

    subject = subject.removesuffix(":")
    match = _SUBJECT.fullmatch(subject)
    assert match is not None
    origin, name = match["file"] or match["module"], match["name"] or match["member"]
    module = _import(origin)
    listed = (
        ", ".join(f"{origin}:{known}" for known in _public_names(module)[:5]) or "no classes and functions in it"
    )
    if not name:
        raise UsageError(f"{subject} names no model. Say which: {listed}.")
    member = module
    for part in name.split("."):
        if not hasattr(member, part):
            raise UsageError(f"{subject}: there is no {part}. There are {listed}.")
        member = getattr(member, part)
    torch.manual_seed(0)
    result = _make(member, subject)
    arguments = dict(result) if isinstance(result, Mapping) else {"model": result}
    if "model" not in arguments:
        raise UsageError(f"{subject}: the dictionary has no key model. Its keys are arguments of examine.")
    return arguments


def maker_names(origin: str) -> list[str]:
    """Return the names of the public functions of a file or module that need no arguments.

    Raises:
        UsageError: it cannot be imported.
    """
    module = _import(origin)
    functions = {name: value for name in _public_names(module) if inspect.isfunction(value := vars(module)[name])}
    return [name for name, function in functions.items() if not _needed_arguments(function)]


def _import(origin: str) -> Any:
    """Import a file or a module.

    Raises:
        UsageError: there is none, or its code raises an error.
    """
    with _errors_of(origin):
        if origin.endswith(".py"):
            return _load_file(Path(origin))
        sys.path.insert(0, "")  # the current folder is searched first
        return importlib.import_module(origin)


def _needed_arguments(member: Any) -> list[str]:
    """Return the names of the arguments without a default of a class or function."""
    try:
        parameters = inspect.signature(member).parameters.values()
    except ValueError:
        return []
    return [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def _make(member: Any, subject: str) -> Any:
    """Call a member if it is a class or a function without arguments, and return its result; else the member.

    Raises:
        UsageError: the class needs arguments, or the call raises an error.
    """
    if not (isinstance(member, type) or inspect.isroutine(member) or isinstance(member, functools.partial)):
        return member
    needed = _needed_arguments(member)
    if needed and isinstance(member, type):
        raise UsageError(
            f"{subject} needs {', '.join(needed)}. Write a function without arguments that returns an instance, "
            "and name it in the place of the class."
        )
    if needed:  # a function of ids is a model
        return member
    with _errors_of(subject):
        return member()


def _load_file(path: Path) -> Any:
    """Import a Python file as pytest does: by its dotted name from the folder above the packages it is in.

    Raises:
        UsageError: there is no such file.
    """
    if not path.is_file():
        raise UsageError(f"{path} is no file. Name a Python file and a function in it: FILE.py:NAME.")
    path = path.resolve()
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules.setdefault(path.stem, module)
    # not from __pycache__, which may hold another text of the same length and second
    exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    return module


def _public_names(module: Any) -> list[str]:
    """Return the names of the public classes and functions that a module defines."""
    return [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
