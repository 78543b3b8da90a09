"""A trained translator: raw text in, raw text out (section 6.1: beam search)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Self

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.interop.ctranslate2 import engine_for, is_export
from manyheads.interop.marian import is_marian
from manyheads.interop.sources import folder_of, open_model
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.packing import pick_format
from manyheads.search.ensemble import mean_logarithm, mean_probability
from manyheads.search.interface import Engine, Hypothesis
from manyheads.tasks.assembly import Assembler
from manyheads.tasks.engine import TorchEngine
from manyheads.tasks.options import PerLine, TranslateOptions, search_options
from manyheads.tasks.parts import Line, split_line
from manyheads.tasks.result import Candidate, Translation
from manyheads.text.incremental import growing_text
from manyheads.text.tokenizer import EOS, TokenizerPair
from manyheads.training.precision import pick_device

__all__ = ["Candidate", "TranslateOptions", "Translation", "Translator"]

DEFAULTS = TranslateOptions()


class Translator:
    """A model, its tokenizers and its search settings.

    What comes out for a line does not depend on the lines beside it, their number or their order.

    Attributes:
        config: of the run; `search` and `data.max_length` are used.
        tokenizers: of both languages.
        engine: what searches.
    """

    def __init__(self, config: Config, tokenizers: TokenizerPair, engine: EncoderDecoder | Engine) -> None:
        """From parts in memory, a model standing for the engine that searches with it; `load` opens a run."""
        self.config = config
        self.tokenizers = tokenizers
        self.engine: Engine = TorchEngine([engine]) if isinstance(engine, EncoderDecoder) else engine

    @property
    def model(self) -> EncoderDecoder:
        """The model that searches, the first one of an ensemble.

        Raises:
            UsageError: another engine searches, whose model cannot be looked into.
        """
        if not isinstance(self.engine, TorchEngine):
            raise UsageError('this needs the model itself. Load it with engine = "torch".')
        return self.engine.models[0]

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        device: str = "auto",
        engine: str = "torch",
        ensemble: Sequence[str | Path] = (),
        geometric: bool = False,
        precision: str = "fp32",
        compile: bool = False,
    ) -> Self:
        """Open a run directory, or a folder that was exported for CTranslate2.

        Args:
            run: the directory.
            device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
            engine: what searches: "torch", or "ctranslate2" (extra ct2), which opens a run and an exported folder.
            ensemble: further runs with the same tokenizers, which decide together with the first one by the mean
                of their probabilities; settings are those of the first.
            geometric: they decide by the mean of the logarithms instead.
            precision: of the computation: "fp32", "bf16" or "int8" (`pack`).
            compile: whether torch compiles the steps of small searches, of up to 16 sentences a call; for GPUs. The
                first calls then take long.

        Raises:
            RunError: a directory is missing, none of ours, or damaged.
            UsageError: the tokenizers of two runs differ, there is no such engine, or it cannot do this.
            MissingExtraError: the engine is not installed.
        """
        if engine not in ("torch", "ctranslate2"):
            raise UsageError(f'there is no engine "{engine}". Use "torch" or "ctranslate2".')
        if engine == "ctranslate2":
            if compile:
                raise UsageError("--compile is for --engine torch. CTranslate2 is compiled already.")
            if precision != "fp32":
                raise UsageError(
                    f"--precision {precision} is for --engine torch. CTranslate2 has that of the folder it opens: "
                    "manyheads export RUN --to ctranslate2 FOLDER --quantization int8."
                )
            if ensemble:
                raise UsageError("an ensemble is for --engine torch. CTranslate2 searches with one model alone.")
            carried, other_engine = engine_for(Path(run), device=device)
            return cls(carried.config, carried.tokenizers, other_engine)
        if is_export(Path(run)):
            raise UsageError(f"{run} is an export, not a run. Use it with --engine ctranslate2.")
        place = pick_device(device)
        directory = RunDirectory.existing(Path(run))
        config = directory.config_of("translation")
        tokenizers = directory.tokenizers(config)
        models = [directory.model(config, tokenizers).to(place)]
        for other in ensemble:
            directory = RunDirectory.existing(Path(other))
            its_config = directory.config_of("translation")
            its_tokenizers = directory.tokenizers(its_config)
            refuse_other_tokenizers(Path(run), tokenizers, Path(other), its_tokenizers)
            models.append(directory.model(its_config, its_tokenizers).to(place))
        combine = mean_logarithm if geometric else mean_probability
        return cls(config, tokenizers, TorchEngine(models, combine, pick_format(precision), compile=compile))

    @classmethod
    def from_pretrained(cls, name: str, *, device: str = "auto", engine: str | None = None) -> Self:
        """Open a translator by its name on the Hugging Face hub (extra hf), or a folder.

        Args:
            name: user/name, or a folder: a run, its export for CTranslate2, or a MarianMT model.
            device: as `load`.
            engine: as `load`; what the folder is for unless given.

        Raises:
            RunError: there is no such translator, or it cannot be read.
            MissingExtraError: a name on the hub without huggingface_hub, or an engine that is not installed.
        """
        folder = folder_of(name)
        if is_export(folder) or engine == "ctranslate2" or not is_marian(folder):
            usual = "ctranslate2" if is_export(folder) else "torch"
            return cls.load(folder, device=device, engine=engine or usual)
        opened = open_model(str(folder))
        return cls(opened.config, opened.tokenizers, opened.model.to(pick_device(device)))

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        prefixes: Sequence[str] = (),
        forbidden: Sequence[Sequence[str]] = (),
        required: Sequence[Sequence[str]] = (),
        options: TranslateOptions = DEFAULTS,
    ) -> list[Translation]:
        """Translate lines; the result has the same number of lines in the same order.

        Args:
            texts: one line each, of any length (`TranslateOptions.split`); empty and blank ones stay empty.
            beam_size: overrides `search.beam_size`; 1 is greedy.
            n_best: candidates a line; the beam is at least as wide.
            prefixes: what the translation of each line begins with; none at all, or one a line.
            forbidden: for each line, phrases that no word of its translation begins with; likewise.
            required: for each line, phrases that stand in its translation; likewise.
            options: all else.

        Raises:
            UsageError: an option is out of its range, or the engine does not know it.
        """
        lines = self.lines(texts, options)
        per_line = PerLine.of(self.tokenizers.target, len(texts), prefixes, forbidden, required)
        places = filled(lines)
        asked = search_options(self.config.search, options, beam_size, n_best, per_line.of_parts(places))
        rows = [self.shortened(lines[number].parts[part]) for number, part in places]
        found: list[list[list[Hypothesis]]] = [[[] for _ in line.parts] for line in lines]
        for (number, part), hypotheses in zip(places, self.engine.search(rows, asked), strict=True):
            found[number][part] = hypotheses
        assembler = Assembler(self.tokenizers, asked, self.longest_source)
        return [
            assembler.translation(line, outputs, per_line.expected(number))
            for number, (line, outputs) in enumerate(zip(lines, found, strict=True))
        ]

    def stream(
        self, text: str, *, prefix: str = "", options: TranslateOptions = DEFAULTS
    ) -> Generator[str, None, bool]:
        """The greedy translation of a line in pieces, each as soon as it is known.

        Together they are the translation that `translate` gives with a beam of 1 and the same options. A model in
        PyTorch is in evaluation mode until the last piece has been taken.

        Returns:
            When all pieces have been taken, whether the source or the output was cut (`Translation.truncated`).
        """
        (line,) = self.lines([text], options)
        per_line = PerLine.of(self.tokenizers.target, 1, [prefix] if prefix else [], [], [])
        places = filled([line])
        asked = search_options(self.config.search, options, 1, 1, per_line.of_parts(places))
        numbers = {part: number for number, (_, part) in enumerate(places)}
        ended: set[int] = set()

        def written(part: int, ids: list[int]) -> Iterator[str]:
            def tokens() -> Iterator[int]:
                for token in self.engine.stream(self.shortened(ids), asked.part([numbers[part]])):
                    if token == EOS:
                        ended.add(part)
                    yield token

            return growing_text(self.tokenizers.target, tokens()) if ids else iter(())

        yield from line.stream(written(part, ids) for part, ids in enumerate(line.parts))
        return len(ended) < len(places) or any(len(ids) > self.longest_source for ids in line.parts)

    def lines(self, texts: Sequence[str], options: TranslateOptions) -> list[Line]:
        """The lines, cut into the parts that are translated one by one."""
        ids = self.tokenizers.source.encode(texts)
        return [
            split_line(
                text,
                row,
                self.tokenizers.source,
                self.config.data.source,
                split=options.split,
                usual=self.config.data.max_length,
                longest=self.longest_source,
            )
            for text, row in zip(texts, ids, strict=True)
        ]

    def shortened(self, ids: list[int]) -> list[int]:
        """As much of a source as the model can take."""
        return ids[: self.longest_source]

    @property
    def longest_source(self) -> int:
        """The longest source of the model in tokens; the end mark takes a place too."""
        if isinstance(self.engine, TorchEngine):
            return self.engine.longest
        return self.config.model.max_positions - 1


def filled(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """(line, part) of every part that has tokens."""
    return [(number, part) for number, line in enumerate(lines) for part, ids in enumerate(line.parts) if ids]


def refuse_other_tokenizers(run: Path, own: TokenizerPair, other: Path, its: TokenizerPair) -> None:
    """Raise `UsageError` when the ids of two runs do not mean the same."""
    sides: list[tuple[str, Callable[[TokenizerPair], str]]] = [
        ("source", lambda pair: pair.source.sha256),
        ("target", lambda pair: pair.target.sha256),
    ]
    for side, digest in sides:
        if digest(own) != digest(its):
            raise UsageError(
                f"{run} and {other} cannot translate together: their {side} tokenizers differ "
                f"(SHA-256 {digest(own)[:12]}, {digest(its)[:12]}). Train both on the same data and tokenizer "
                "settings."
            )
