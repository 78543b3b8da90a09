"""A trained translator: raw text in, raw text out (section 6.1: beam search)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.glossary import Glossary
from manyheads.decoding.auto_engine import AutoEngine, check_engine, engine_of, open_engine, open_ensemble
from manyheads.decoding.native.weights import parse_precision
from manyheads.errors import MissingExtraError, RunError, UsageError
from manyheads.interop.hub import folder_of, is_marian
from manyheads.search.interface import (
    Engine,
    Hypothesis,
    LimitedEngine,
    best_outputs,
    never_cancelled,
    without_first,
)
from manyheads.search.options import Constraints, SearchOptions
from manyheads.tasks.assembly import Assembler
from manyheads.tasks.confidence import CONFIDENCE, ConfidenceModel
from manyheads.tasks.directions import with_direction
from manyheads.tasks.kept_texts import is_complete, knows_marks
from manyheads.tasks.options import LineConstraints, encode_forced, line_constraints
from manyheads.tasks.parts import Line, Splitter
from manyheads.tasks.result import Candidate, Translation
from manyheads.tasks.terms import check_terms, choose_outputs, force_phrases, lack_phrases, require_terms
from manyheads.tasks.torch_parts import torch_module
from manyheads.text.interface import growing_text
from manyheads.text.reserved import TERM_SYMBOLS
from manyheads.text.source_model import SOURCES, SourceModel
from manyheads.text.tokenizer import EOS, TokenizerPair

if TYPE_CHECKING:
    from manyheads.decoding.engine import TorchEngine
    from manyheads.model.encoder_decoder import EncoderDecoder

__all__ = ["Candidate", "SearchOptions", "Translation", "Translator"]

DEFAULTS = SearchOptions()
_WIDE_BEAM = 10  # outputs among which one with all marks is looked for, where the best has not


class Translator:
    """A model, its tokenizers and its search settings.

    The translation of a line does not depend on the other lines of a call, their number or their order.

    Attributes:
        config: configuration of the run; `search` and `data.max_length` are used.
        tokenizers: tokenizers of source and target.
        engine: the search backend.
        sources: model of the training sources, which gives the warning "unlike-training"; None gives none.
        confidence: model of the confidence in a translation; None gives none.
        glossary: terms with the translations that they must have, or None; see `with_glossary`.
        run: the run directory that was opened, or None.
        trained: whether the model was trained to translate between the languages of `config`; see `to`.
    """

    task: ClassVar[str] = "translation"  # of the runs that can be opened

    def __init__(
        self,
        config: Config,
        tokenizers: TokenizerPair,
        engine: EncoderDecoder | Engine,
        sources: SourceModel | None = None,
        confidence: ConfidenceModel | None = None,
    ) -> None:
        """Make a translator from objects in memory; a model gets a new `AutoEngine`. `load` opens a run."""
        self.config = config
        self.tokenizers = tokenizers
        self.engine = engine if isinstance(engine, Engine) else engine_of(engine)
        self.sources = sources
        self.confidence = confidence
        self.glossary: Glossary | None = None
        self.trained = True
        self.run: RunDirectory | None = None

    def copy(self, *, config: Config | None = None, engine: Engine | None = None) -> Self:
        """Return a translator with another configuration or engine, and the same for the rest."""
        copied = type(self)(
            config or self.config, self.tokenizers, engine or self.engine, self.sources, self.confidence
        )
        copied.glossary, copied.trained, copied.run = self.glossary, self.trained, self.run
        return copied

    def to(self, *, source: str = "", target: str = "") -> Self:
        """Return the translator of one direction of a model of several languages.

        A direction that was not trained gives the warning "untrained-direction", if the model reads the source and
        writes the target.

        Args:
            source: code of the source language; "" if only one trained direction fits.
            target: code of the target language, likewise.

        Raises:
            UsageError: the model does not know a language, or several directions fit; the message names them.
        """
        config = with_direction(self.config, source, target)
        copied = self.copy(config=config)
        copied.trained = self.trained and config.languages in self.config.directions
        return copied

    def with_glossary(self, glossary: Glossary) -> Self:
        """Return a translator that translates terms as a glossary says, wherever they occur.

        Where an output lacks the translation of a term, the search is repeated: first, after a training with
        `data.terms`, with the translation in the place of the term, which may be inflected; then constrained to
        outputs with it. A constrained output that is far less likely is not used (warning "forced-term").

        Raises:
            UsageError: a translation cannot come out: the vocabulary cannot write it, or it is too long.
        """
        check_terms(glossary, self.tokenizers.target, self.longest_source)
        copied = self.copy()
        copied.glossary = glossary.in_language(self.config.data.source)
        return copied

    @property
    def model(self) -> EncoderDecoder:
        """The model of the engine; the first one of an ensemble.

        Raises:
            UsageError: the engine does not give access to its model.
        """
        engine = self.torch_engine
        if engine is None:
            raise UsageError('this needs the model itself. Load it with engine = "auto".')
        return engine.models[0]

    @property
    def torch_engine(self) -> TorchEngine | None:
        """The PyTorch engine, loaded on first use; None if there is none."""
        engine = self.engine.torch_engine if isinstance(self.engine, AutoEngine) else self.engine
        with_torch: type[TorchEngine] = torch_module("engine", "The model itself").TorchEngine
        return engine if isinstance(engine, with_torch) else None

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        device: str = "auto",
        engine: str = "auto",
        ensemble: Sequence[str | Path] = (),
        precision: str = "fp32",
    ) -> Self:
        """Open a run directory.

        Args:
            run: the directory.
            device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
            engine: search backend: "native" is the C code, "torch" are torch operators; "auto" takes C where it can
                compute, on a CPU.
            ensemble: further runs with the same tokenizers, whose probabilities are averaged with those of the
                first run; the settings are those of the first run.
            precision: number format of the computation: "fp32", "bf16", or "int8", which the C code alone has.

        Raises:
            RunError: a directory is missing, not a run, or damaged.
            UsageError: the tokenizers of two runs differ, or the engine is unknown or does not support an option.
            MissingExtraError: the engine is not installed.
        """
        check_engine(engine)
        directory = RunDirectory.existing(Path(run))
        config = directory.config_of(cls.task)
        tokenizers = directory.tokenizers(config)
        sources, confidence = _read_source_model(directory, tokenizers), _read_confidence(directory)
        number_format = parse_precision(precision)
        if ensemble:
            runs = [directory, *(RunDirectory.existing(Path(other)) for other in ensemble)]
            opened = open_ensemble(engine, runs, device=device, precision=number_format)
        else:
            opened = open_engine(engine, directory, config, tokenizers, device=device, precision=number_format)
        loaded = cls(config, tokenizers, opened, sources, confidence)
        loaded.run = directory
        return loaded

    @classmethod
    def load_to_serve(cls, run: Path, device: str, *, engine: str, precision: str, beam: int | None) -> Self:
        """Open a run to serve it with this beam size; None is that of the run. For the other options see `load`."""
        loaded = cls.load(run, device=device, engine=engine, precision=precision)
        overrides = [] if beam is None else [f"search.beam_size={beam}"]
        return loaded.copy(config=with_overrides(loaded.config, overrides))

    @classmethod
    def from_pretrained(cls, name: str | Path, *, device: str = "auto", engine: str = "auto") -> Self:
        """Open a translator from the Hugging Face hub (extra hf) or from a folder.

        Args:
            name: user/name on the hub, or a folder: a run, or a MarianMT model.
            device: see `load`.
            engine: see `load`.

        Raises:
            RunError: there is no such translator, or it cannot be read.
            MissingExtraError: huggingface_hub (for a name on the hub) or the engine is not installed.
        """
        folder = folder_of(name)
        if not is_marian(folder):
            return cls.load(folder, device=device, engine=engine)
        marian = torch_module("marian", "A model of MarianMT").read_marian(folder)
        torch_device = torch_module("devices", "A model of MarianMT").pick_device(device)
        made = engine_of(marian.model.to(torch_device), engine)
        return cls(marian.config, marian.tokenizers, made)

    def translate(
        self,
        texts: Sequence[str],
        *,
        target: str = "",
        source: str = "",
        beam_size: int | None = None,
        n_best: int | None = None,
        prefixes: Sequence[str] = (),
        forbidden: Sequence[Sequence[str]] = (),
        required: Sequence[Sequence[str]] = (),
        options: SearchOptions = DEFAULTS,
        stop: Callable[[], bool] | None = None,
    ) -> list[Translation]:
        """Translate lines; the result has the same number of lines in the same order.

        Args:
            texts: lines of any length (`SearchOptions.split`). White space at their ends stays as it is, and so
                do line ends within them, and lines without a letter.
            target: target language, for a model of several languages; see `to`.
            source: source language, likewise, where several are translated into the target.
            beam_size: overrides `options.beam_size`; 1 is greedy.
            n_best: overrides `options.n_best`, the number of candidates a line; the beam size is raised to it if it
                is smaller.
            prefixes: forced beginning of the translation of each line; empty, or one a line.
            forbidden: for each line, phrases that no word of its translation may begin with; empty, or one list a
                line.
            required: for each line, phrases that its translation must contain, between the boundaries of words;
                empty, or one list a line.
            options: all other options.
            stop: called at every step of the search; when it returns True, the translations end unfinished.

        Raises:
            UsageError: an option is out of its range, or the engine does not support it; or as of `to`.
        """
        if target or source or self.config.data.pairs:
            translate = partial(
                self.to(source=source, target=target).translate, texts, beam_size=beam_size, n_best=n_best
            )
            return translate(prefixes=prefixes, forbidden=forbidden, required=required, options=options, stop=stop)
        lines = self.splitter(options, marks=self.marks_literals).lines(texts)
        per_line = line_constraints(self.tokenizers.target, len(texts), prefixes, forbidden, required)
        if options.sampling and (self.glossary is not None or any(map(any, required))):
            raise UsageError("a glossary and required phrases are obeyed by beam search, not by sampling.")
        if self.glossary is not None:
            hints = TERM_SYMBOLS[0] in self.tokenizers.source.reserved and not options.alignment
            required_terms = partial(require_terms, self.glossary, self.tokenizers, hints=hints)
            per_line = [*map(required_terms, lines, per_line)]
        if beam_size is not None:
            options = replace(options, beam_size=beam_size)
        if n_best is not None:
            options = replace(options, n_best=n_best)
        if options.min_confidence and self.confidence is None:
            raise UsageError(
                "min_confidence: this translator has no model of the confidence. A run gets one from its "
                "`manyheads train` command, given once more; an export has none."
            )
        options = options.complete(vars(self.config.search))
        if language := self.prefix:
            per_line = [replace(constraint, language=language) for constraint in per_line]
        outputs = self._outputs(lines, per_line, options, stop)
        wide = max(_WIDE_BEAM, options.beam_size)
        wider = replace(options, beam_size=wide, n_best=wide)
        for retry, marked in ((wider, not options.sampling), (options, False)):
            lost = [row for row, parts in enumerate(outputs) if not all(parts)]
            if not lost:
                break
            again = self.splitter(options, marks=marked).lines([texts[row] for row in lost])
            found = self._outputs(again, [per_line[row] for row in lost], retry, stop)
            for row, line, parts in zip(lost, again, found, strict=True):
                lines[row], outputs[row] = line, [part[: options.n_best] for part in parts]
        assembler = self.assembler(options)
        return [
            assembler.translation(line, line_outputs, constraint)
            for line, line_outputs, constraint in zip(lines, outputs, per_line, strict=True)
        ]

    def check_forced(self, text: str, name: str) -> None:
        """Raise `UsageError` for a text, called `name`, that no output can hold."""
        length = len(encode_forced(self.tokenizers.target, text, name)) if text.strip() else 0
        if length > self.longest_source:
            raise UsageError(
                f"the {name} has {length} tokens, but the longest output of this model is {self.longest_source}."
            )

    @property
    def marks_literals(self) -> bool:
        """Whether the model gets marks in the place of literals; with a glossary it does not."""
        return self.config.search.copy_literals and self.glossary is None and knows_marks(self.tokenizers)

    def _outputs(
        self,
        lines: Sequence[Line],
        per_line: Sequence[LineConstraints],
        options: SearchOptions,
        stop: Callable[[], bool] | None,
    ) -> list[list[list[Hypothesis]]]:
        """Search for the outputs of the parts of lines, without those that lack the mark of a literal."""
        parts = [
            (line, constraint, part)
            for line, constraint in zip(lines, per_line, strict=True)
            for part in range(len(line.parts))
        ]
        rows = [self.shortened(line.parts[part]) for line, _, part in parts]
        found = self._search(rows, options, [(constraint, part) for _, constraint, part in parts], stop)
        target = self.tokenizers.target
        complete = iter(
            [output for output in outputs if is_complete(line.kept[part], target, output.tokens)]
            if part in line.kept
            else outputs
            for (line, _, part), outputs in zip(parts, found, strict=True)
        )
        return [[next(complete) for _ in line.parts] for line in lines]

    def assembler(self, options: SearchOptions) -> Assembler:
        """Return the builder of translations from the outputs of a search with these options."""
        return Assembler(
            self.tokenizers,
            options,
            self.longest_source,
            self.sources,
            (self.config.data.source, self.config.data.target),
            confidence=self.confidence,
            trained=self.trained,
        )

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, target: str = "", source: str = ""
    ) -> list[Translation]:
        """Return given translations with the scores that the model gives them: the targets are forced as outputs.

        Each pair is one part, however long; a pair with an empty side, or longer than the model, has no candidate.
        `Candidate.score` is the mean log-probability of a token, its end mark included, in nats. For a model of
        several languages, `target` and `source` choose the direction; see `to`.
        """
        if target or source or self.config.data.pairs:
            return self.to(source=source, target=target).score(sources, targets)
        rows, outputs = self.tokenizers.source.encode(sources), self.tokenizers.target.encode(targets)
        longest, longest_output = self.longest_source, self.longest_source - len(self.prefix) - 1
        lines = [
            Line(
                text, [(0, len(text))], [row] if 0 < len(row) <= longest and 0 < len(ids) <= longest_output else []
            )
            for text, row, ids in zip(sources, rows, outputs, strict=True)
        ]
        options = SearchOptions(
            beam_size=1, length_penalty=1.0, no_repeat_ngram=0, max_length_ratio=0.0, max_length_offset=0
        ).complete(vars(self.config.search))
        forced = [
            (LineConstraints(Constraints(prefix=(*ids, EOS)), language=self.prefix), 0)
            for line, ids in zip(lines, outputs, strict=True)
            if line.parts
        ]
        found = iter(self._search([row for line in lines for row in line.parts], options, forced, None))
        assembler, unscored = self.assembler(options), LineConstraints()
        return [
            assembler.translation(line, [next(found)], unscored)
            if line.parts
            else Translation(line.text, [], truncated=len(row) > longest or len(ids) > longest_output)
            for line, row, ids in zip(lines, rows, outputs, strict=True)
        ]

    def _search(
        self,
        rows: list[list[int]],
        options: SearchOptions,
        parts: Sequence[tuple[LineConstraints, int]],
        stop: Callable[[], bool] | None,
    ) -> list[list[Hypothesis]]:
        """Search for the outputs of rows, and again where an output lacks a phrase or the translation of a term.

        That is first with hints, if the model knows them, then with constraints. After hints, an output stays as
        it is, with a warning, if there is no constrained search (no torch). `parts` are the
        constraints on the line of each row, and the number of the row in that line.
        """
        cancelled = never_cancelled if stop is None else lambda: range(len(rows)) if stop() else ()
        outputs = self.engine.search(rows, options, [line.of_part(part) for line, part in parts], cancelled)
        target, language = self.tokenizers.target, self.config.data.target

        def lacking() -> list[int]:
            return [
                row
                for row, (line, part) in enumerate(parts)
                if lack_phrases(target, outputs[row], line, part, language)
            ]

        if hinted := [row for row in lacking() if parts[row][0].hinted]:
            rows = [*rows]
            for row in hinted:
                line, part = parts[row]
                rows[row] = self.shortened(line.hinted[part])
            constraints = [parts[row][0].of_part(parts[row][1]) for row in hinted]
            found = self.engine.search([rows[row] for row in hinted], options, constraints, cancelled)
            for row, hypotheses in zip(hinted, found, strict=True):
                outputs[row] = hypotheses
        if chosen := lacking():
            constraints = [force_phrases(target, outputs[row][0], *parts[row]) for row in chosen]
            try:
                found = self.engine.search([rows[row] for row in chosen], options, constraints, cancelled)
            except (MissingExtraError, UsageError):
                if not hinted:
                    raise
                found = [outputs[row] for row in chosen]
            for row, forced in zip(chosen, found, strict=True):
                line, part = parts[row]
                required = not part and bool(line.tokens.required)
                outputs[row] = choose_outputs(outputs[row], forced, required=required)
        return self._without_prefix(outputs, options) if self.prefix else outputs

    @property
    def prefix(self) -> tuple[int, ...]:
        """Tokens that every output begins with, and that are no part of it: the symbol of the target language."""
        return self.tokenizers.target.language_prefix(self.config.data.target)

    def _without_prefix(
        self, outputs: Sequence[Sequence[Hypothesis]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Return outputs without `prefix` and its scores; those of a beam are ordered anew."""
        size, penalty = len(self.prefix), options.length_penalty
        shorter = [[without_first(output, size, penalty) for output in row] for row in outputs]
        return shorter if options.sampling else [best_outputs(row, len(row)) for row in shorter]

    def stream(
        self, text: str, *, target: str = "", source: str = "", prefix: str = "", options: SearchOptions = DEFAULTS
    ) -> Generator[str, None, bool]:
        """Yield the greedy translation of a line in pieces, as they are generated.

        The joined pieces are the translation of `translate` with a beam size of 1 and the same options, except that
        `match_source` is ignored: the end is not known yet. A torch model stays in evaluation mode until the last
        piece.

        Returns:
            Whether the source or the output was cut (`Translation.truncated`), after the last piece.

        Raises:
            UsageError: the translator has a glossary, whose terms cannot be required of one step after another; or
                as of `to`.
        """
        if target or source or self.config.data.pairs:
            return (yield from self.to(source=source, target=target).stream(text, prefix=prefix, options=options))
        if self.glossary is not None:
            raise UsageError("a translation with a glossary is not streamed. Use translate.")
        (line,) = self.splitter(options, marks=self.marks_literals).lines([text])
        if line.kept:  # only a whole output can be checked for its marks
            greedy = replace(options, n_best=1, match_source=False)
            (found,) = self.translate([text], beam_size=1, prefixes=[prefix], options=greedy)
            yield from filter(None, [found.translation])
            return found.truncated
        (constraint,) = line_constraints(self.tokenizers.target, 1, [prefix], [], [])
        constraint = replace(constraint, language=self.prefix)
        options = replace(options, beam_size=1, n_best=1).complete(vars(self.config.search))
        ended: set[int] = set()

        def stream_part(part: int, ids: list[int]) -> Iterator[str]:
            def tokens() -> Iterator[int]:
                for token in self.engine.stream(self.shortened(ids), options, constraint.of_part(part)):
                    if token == EOS:
                        ended.add(part)
                    yield token

            return growing_text(self.tokenizers.target, tokens(), line.part_text(part))

        yield from line.stream(stream_part(part, ids) for part, ids in enumerate(line.parts))
        return len(ended) < len(line.parts) or any(len(ids) > self.longest_source for ids in line.parts)

    def splitter(self, options: SearchOptions = DEFAULTS, *, marks: bool = False) -> Splitter:
        """Return the splitter of lines into the parts that are translated separately; `marks`: see `Splitter`."""
        search = self.config.search
        single = options.split == "auto" and self.sources is not None and self.sources.single_sentences
        return Splitter(
            self.tokenizers.source,
            self.config.data.source,
            split="sentences" if single else options.split,
            trained_length=self.config.data.max_length,
            longest=self.longest_source,
            copy_literals=search.copy_literals,
            lower_capitals=search.lower_capitals,
            marks=marks,
            target=self.config.data.target,
        )

    def shortened(self, ids: list[int]) -> list[int]:
        """Cut a source at the limit of the model."""
        return ids[: self.longest_source]

    @cached_property
    def longest_source(self) -> int:
        """Maximum length of a source in tokens; the end mark needs one more position."""
        if isinstance(self.engine, LimitedEngine):  # for an ensemble, the lowest limit of its models
            return self.engine.longest
        return self.config.model.max_positions - 1


def _read_source_model(run: RunDirectory, tokenizers: TokenizerPair) -> SourceModel | None:
    """Read the model of the training sources of a run; None if it has none: an old run, or one made elsewhere."""
    path = run.path / SOURCES
    if not path.is_file():
        return None
    try:
        return SourceModel.from_json(run.document(SOURCES), tokenizers.source.size)
    except ValueError as error:
        raise RunError(f"{path} is damaged: it holds no model of sources. Copy the run directory again.") from error


def _read_confidence(run: RunDirectory) -> ConfidenceModel | None:
    """Read the model of the confidence of a run; None if it has none."""
    path = run.path / CONFIDENCE
    if not path.is_file():
        return None
    try:
        return ConfidenceModel.from_json(run.document(CONFIDENCE))
    except ValueError as error:
        raise RunError(f"{path} is damaged: it holds no model of confidence. Remove it.") from error
