"""Judge a submitted language model: whether the loss that it reports is one that it earned.

Three kinds of cheating that contests of small language models have met are refused: a loss that reads later tokens,
one that is not normalised, and a table of the test text. The verdict names model, code and versions by hashes.

Shapes: B rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor import __version__
from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.splits import examine_split
from transformer_doctor.errors import UsageError
from transformer_doctor.examination import examine
from transformer_doctor.model_adapter import ModelAdapter, find_modules, restore_modes
from transformer_doctor.report import Diagnosis, Report, report_on
from transformer_doctor.tolerances import SAME_LOSS
from transformer_doctor.wrapping import wrap_model

NORMALIZED = "the probabilities of all next tokens have the sum 1"
STATED_LOSS = "the reported loss is the cross-entropy of the model's scores"
UNKNOWN_TEST = "the model does not hold the test text"
RELOADS = "saved and loaded weights give the same loss"
_NO_LATER_TOKENS = "no position depends on later target tokens"
_PREFIXES = (6, 47, 190)  # tokens of the texts to which every next token is appended
_ALL_TOKENS, _ROWS = 4096, 512  # next tokens that are tried, rows of a call
_WORK = 200_000  # tokens of all calls of a prefix
_WINDOW, _WINDOWS = 64, 32  # tokens and number of the texts by which train and test text are compared
_SUM = 1e-3  # deviation from 1 of a sum of probabilities: rounding of the difference of two losses
_LEAST_NATS = 0.25  # nats a byte: far below what the best models of today reach on text that they have not seen
_LEAKED_LOSS_RATIO = 0.5  # loss on test text over that on training text, below which it is taken for a table
_SECONDS = 5.0  # that making the model again may take
_BYTES = 256
_NATS = {"nats": 1.0, "bits": math.log(2)}  # by unit
_NO_LOSS = "no loss was given: it is the cross-entropy of the scores"


def referee(
    make: Callable[[], Any], *, train: str | None = None, test: str | None = None, code: Sequence[Path] = ()
) -> Diagnosis:
    """Judge a language model; each error among the findings of the verdict is a reason to refuse it.

    Args:
        make: function without arguments that returns the model with its weights, or a dictionary of `model` and,
            if wanted, `loss`: a function of ids (B, T) that returns the loss that is reported, the mean over the
            T - 1 tokens that follow another one, of all rows or of each row (B,); without it the loss is the
            cross-entropy of the model's scores. `unit`: of that loss a token, "nats" (default) or "bits".
            `encode`: function of a text that returns its ids; without it they are the bytes. Further keys are
            arguments of `examine`.
        train: text that the model was trained on.
        test: text that it is scored on.
        code: files whose hashes the verdict states.

    Raises:
        UsageError: it is not clear how to call the model or how to encode the texts, or a question that decides is
            not answered. Errors of the submission's own functions are raised as they are: it is not judged.
    """
    torch.manual_seed(0)
    start = time.perf_counter()
    submission = _Submission.of(make())
    seconds = time.perf_counter() - start
    examined = examine(submission.model, **submission.options, quick=True)
    # what a warning names, such as a limit of length, does not change the score
    findings = [
        replace(finding, severity="note") if finding.severity == "warning" else finding
        for finding in examined.findings
    ]
    report = replace(examined, findings=findings)
    unanswered = [f"{check} ({reason})" for check, reason in report.skipped if check == _NO_LATER_TOKENS]
    if unanswered:
        raise UsageError(f"the submission cannot be judged: {unanswered[0]}.")
    module = find_modules(submission.model)
    with restore_modes(module), torch.no_grad():
        if module is not None:
            module.eval()
        report += submission.normalization() + submission.stated_loss() + submission.known_test(train, test)
        if train is not None and test is not None:
            report += examine_split(_lines(train), _lines(test))
        if seconds > _SECONDS:
            report += report_on(RELOADS, reason=f"making the model again takes {seconds:.0f} s")
        else:
            with torch.enable_grad():  # making may train
                fresh = _Submission.of(make())
            report += submission.reload(fresh)
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in code}
    versions = {"python": platform.python_version(), "torch": torch.__version__, "transformer-doctor": __version__}
    weights = _hash_of_weights(module)
    document: dict[str, Any] = {"model": weights, "code": hashes, "versions": versions}
    signed = json.dumps({**document, **report.to_json()}, sort_keys=True)
    document["signature"] = hashlib.sha256(signed.encode()).hexdigest()
    facts = {"weights": weights, **hashes, "verdict": "accepted" if report.ok else "refused"}
    return Diagnosis(facts, report, document)


@dataclass(frozen=True)
class _Submission:
    model: Any
    options: Mapping[str, Any]
    loss: Callable[[Tensor], Any] | None
    nats_a_unit: float
    encode: Callable[[str], Sequence[int]] | None

    @classmethod
    def of(cls, made: Any) -> _Submission:
        options = dict(made) if isinstance(made, Mapping) else {"model": made}
        unit = options.pop("unit", "nats")
        if unit not in _NATS:
            raise UsageError(f"unit is {unit!r}; a loss is in {' or '.join(_NATS)}.")
        model, loss, encode = options.pop("model"), options.pop("loss", None), options.pop("encode", None)
        return cls(model, {"kind": "decoder", **options}, loss, _NATS[unit], encode)

    @cached_property
    def adapter(self) -> ModelAdapter:
        names = ("vocab_size", "pad", "bos", "eos", "kind", "masks")
        given: dict[str, Any] = {name: self.options.get(name) for name in names}
        return wrap_model(self.model, **given, time_first=self.options.get("time_first", False))

    @property
    def size(self) -> int:
        return self.adapter.size("target")

    def nats(self, ids: Tensor) -> Tensor:
        """Return the reported loss of each row (B, T) in nats, the sum over its T - 1 tokens: (B,)."""
        if self.loss is None:
            return self.cross_entropies(ids)
        ids = ids.to(self.adapter.device)
        losses = torch.as_tensor(self.loss(ids)).double()
        if losses.shape != (len(ids),):
            losses = torch.stack([torch.as_tensor(self.loss(row[None])).double().reshape(()) for row in ids])
        return losses.cpu() * (ids.size(1) - 1) * self.nats_a_unit

    def cross_entropies(self, ids: Tensor) -> Tensor:
        """Return the cross-entropy of the model's scores for each row (B, T) in nats, summed over tokens: (B,)."""
        scores = self.adapter({"target": ids})[:, :-1].double().log_softmax(-1)
        return -scores.gather(-1, ids[:, 1:, None].to(scores.device)).sum((1, 2)).cpu()

    def normalization(self) -> Report:
        """Append every token to a text: the probabilities that the losses mean must have the sum 1."""
        if self.loss is None:
            return report_on(NORMALIZED, reason=_NO_LOSS)
        generator = torch.Generator().manual_seed(3)
        tokens = torch.randperm(self.size, generator=generator)[:_ALL_TOKENS]
        for length in _PREFIXES:
            if length >= (self.adapter.stated_limit or math.inf) or length * len(tokens) > _WORK:
                break
            prefix = torch.randint(self.size, (1, length), generator=generator)
            rows = torch.cat([prefix.expand(len(tokens), -1), tokens[:, None]], 1)
            losses = torch.cat([self.nats(part) for part in rows.split(_ROWS)])
            total = float((self.nats(prefix) - losses).exp().sum())
            if not total <= 1 + _SUM or (len(tokens) == self.size and total < 1 - _SUM):
                evidence = f"the probabilities that the loss gives to {len(tokens)} tokens,"
                evidence += f" each appended to the same {length}, have the sum {total:.4g}"
                return report_on(NORMALIZED, [model_finding("score-not-normalised", evidence)])
        return report_on(NORMALIZED)

    def stated_loss(self) -> Report:
        """Compare the reported loss with the cross-entropy of the scores, in the stated unit."""
        if self.loss is None:
            return report_on(STATED_LOSS, reason=_NO_LOSS)
        ids = torch.randint(self.size, (4, 16), generator=torch.Generator().manual_seed(4))
        reported, computed = float(self.nats(ids).sum()), float(self.cross_entropies(ids).sum())
        if math.isclose(reported, computed, rel_tol=SAME_LOSS):
            return report_on(STATED_LOSS)
        count = ids[:, 1:].numel()
        evidence = f"on random tokens the loss is {reported / count:.4g} nats a"
        evidence += f" token, the cross-entropy of the scores {computed / count:.4g}"
        return report_on(STATED_LOSS, [model_finding("loss-differs-from-scores", evidence)])

    def known_test(self, train: str | None, test: str | None) -> Report:
        """Look for files that are read while text is scored, and for a loss on test text that no model reaches."""
        if test is None:
            return report_on(UNKNOWN_TEST, reason="test was not given")
        windows, evidence = self.windows(test), ""
        with _opened_files() as opened:
            loss = float(self.nats(windows).mean())
        tokens_a_byte = len(self.ids_of(test)) / len(test.encode())
        nats_a_byte = loss / (windows.size(1) - 1) * tokens_a_byte
        training = math.inf if train is None else float(self.nats(self.windows(train)).mean())
        if opened:
            evidence = f"{opened[0]} was opened while the test text was scored"
        elif nats_a_byte < _LEAST_NATS:
            evidence = f"the loss on the test text is {nats_a_byte:.3g} nats a byte"
        elif train is not None and loss < _LEAKED_LOSS_RATIO * training:
            evidence = f"the loss on the test text is {loss / training:.0%} of that on the training text"
        return report_on(UNKNOWN_TEST, [model_finding("test-text-known", evidence)] if evidence else [])

    def reload(self, fresh: _Submission) -> Report:
        """Load the weights into a model that was made anew, and compare the losses."""
        module, other = find_modules(self.model), find_modules(fresh.model)
        if module is None or other is None:
            return report_on(RELOADS, reason="the model is no module")
        for weight in other.parameters():  # so that nothing is left of a making that repeats itself
            weight.zero_()
        other.load_state_dict(module.state_dict())
        other.eval()
        ids = torch.randint(self.size, (4, 16), generator=torch.Generator().manual_seed(5))
        before, after = float(self.nats(ids).sum()), float(fresh.nats(ids).sum())
        if math.isclose(before, after, rel_tol=SAME_LOSS):
            return report_on(RELOADS)
        evidence = f"the loss on random tokens is {before:.6g} nats before saving and {after:.6g} after loading"
        return report_on(RELOADS, [model_finding("reload-differs", evidence)])

    def ids_of(self, text: str) -> Sequence[int]:
        if self.encode is not None:
            return self.encode(text)
        if self.size < _BYTES:
            raise UsageError(f"the model knows {self.size} ids, fewer than there are bytes: give encode.")
        return list(text.encode())

    def windows(self, text: str) -> Tensor:
        """Return parts of a text, evenly spaced: (B, T)."""
        ids, length = self.ids_of(text), min(_WINDOW, self.adapter.stated_limit or _WINDOW)
        if len(ids) < 2 * length:
            raise UsageError(f"a text of {len(ids)} tokens is too short to judge by: {2 * length} are needed.")
        step = max(1, (len(ids) - length) // _WINDOWS)
        return torch.tensor([ids[start : start + length] for start in range(0, len(ids) - length, step)][:_WINDOWS])


_watching: list[list[str]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _watching and isinstance(arguments[0], (str, bytes)):
        name = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode(errors="replace")
        if not name.endswith((".py", ".pyc", ".so")):
            _watching[-1].append(name)


@cache
def _audit_once() -> None:
    sys.addaudithook(_audit)  # it cannot be removed


@contextmanager
def _opened_files() -> Iterator[list[str]]:
    """Yield the names of the files that are opened inside the context, modules that are imported left out."""
    _audit_once()
    _watching.append([])
    try:
        yield _watching[-1]
    finally:
        _watching.pop()


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _hash_of_weights(module: nn.Module | None) -> str:
    """Return the SHA-256 of the names, shapes and bytes of the weights and buffers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()) if module is not None else ():
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {plain.dtype} {tuple(plain.shape)}".encode())
        digest.update(plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return digest.hexdigest()
