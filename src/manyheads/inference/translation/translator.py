"""A trained translator: raw text in, raw text out (section 6.1: beam search)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from bitext.files import write_atomically, writing
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.hub import folder_of, is_marian
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data import CALL_LINES
from manyheads.documents.document import Document, ReadOptions
from manyheads.errors import DataError, UsageError
from manyheads.inference.engines import AutoEngine, check_engine, engine_of, open_engine, open_ensemble
from manyheads.inference.native.weights import parse_precision
from manyheads.inference.torch_parts import torch_module
from manyheads.inference.translation.assembly import Assembler
from manyheads.inference.translation.confidence import Confidence, ConfidenceModel, read_confidence
from manyheads.inference.translation.directions import Direction, with_direction
from manyheads.inference.translation.documents import (
    DocumentReport,
    UnitFields,
    read_file,
    with_alignment,
    write_document,
)
from manyheads.inference.translation.glossary import Glossary
from manyheads.inference.translation.literals import Placeholders
from manyheads.inference.translation.match_source import MatchSource
from manyheads.inference.translation.options import Phrases, encode_forced
from manyheads.inference.translation.output_checks import BrokenCharacters, LineChecks
from manyheads.inference.translation.parts import Line, Splitter
from manyheads.inference.translation.result import Candidate, Translation
from manyheads.inference.translation.stages import Draft, Part, Request, Stage, search
from manyheads.inference.translation.terms import Terms, check_terms
from manyheads.inference.translation.unlike_training import SourceModel, UnlikeTraining, read_source_model
from manyheads.search.interface import Engine, LimitedEngine
from manyheads.search.options import SearchOptions
from manyheads.text.interface import growing_text
from manyheads.text.tokenizer import EOS, TokenizerPair

if TYPE_CHECKING:
    from manyheads.decoding.engine import TorchEngine
    from manyheads.model.encoder_decoder import EncoderDecoder

__all__ = ["Candidate", "SearchOptions", "Translation", "Translator"]

DEFAULTS = SearchOptions()
STAGES: tuple[type[Stage], ...] = (
    Direction,
    UnlikeTraining,
    Placeholders,
    LineChecks,
    Phrases,
    Terms,
    MatchSource,
    BrokenCharacters,
    Confidence,
)
# Names that `Translation.warnings` may hold, in their order -> their meaning.
WARNINGS = {name: meaning for stage in STAGES for name, meaning in stage.warnings.items()}
TRUNCATED = "cut at the length limit of the model or of the search"


@dataclass(frozen=True, eq=False, repr=False)
class Translator:
    """A model, its tokenizers and its search settings.

    The translation of a line does not depend on the other lines of a call, their number or their order.
    `dataclasses.replace` makes a translator that differs in some attributes.

    Attributes:
        config: configuration of the run; `search` and `data.max_length` are used.
        tokenizers: tokenizers of source and target.
        engine: the search backend.
        sources: model of the training sources, which gives the warning "unlike-training"; None gives none.
        confidence: model of the confidence in a translation; None gives none.
        glossary: terms with the translations that they must have, or None; see `with_glossary`.
        run: the run directory that was opened, or None.
        trained: whether the model was trained to translate between the languages of `config`; see `to`.
        stages: features of a translation, in their order.
    """

    task: ClassVar[str] = "translation"  # of the runs that can be opened

    config: Config
    tokenizers: TokenizerPair
    engine: Engine
    sources: SourceModel | None
    confidence: ConfidenceModel | None
    glossary: Glossary | None
    trained: bool
    run: RunDirectory | None
    stages: tuple[type[Stage], ...]

    def __init__(
        self,
        config: Config,
        tokenizers: TokenizerPair,
        engine: EncoderDecoder | Engine,
        sources: SourceModel | None = None,
        confidence: ConfidenceModel | None = None,
        *,
        glossary: Glossary | None = None,
        trained: bool = True,
        run: RunDirectory | None = None,
        stages: tuple[type[Stage], ...] = STAGES,
    ) -> None:
        """Make a translator from objects in memory; a model gets a new `AutoEngine`. `load` opens a run."""
        engine = engine if isinstance(engine, Engine) else engine_of(engine)
        vars(self).update(
            config=config,
            tokenizers=tokenizers,
            engine=engine,
            sources=sources,
            confidence=confidence,
            glossary=glossary,
            trained=trained,
            run=run,
            stages=stages,
        )

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
        if config is self.config:
            return self
        return replace(self, config=config, trained=self.trained and config.languages in self.config.directions)

    def with_glossary(self, glossary: Glossary) -> Self:
        """Return a translator that translates terms as a glossary says, wherever they occur.

        Where an output lacks the translation of a term, the search is repeated: first, after a training with
        `data.terms`, with the translation in the place of the term, which may be inflected; then constrained to
        outputs with it. A constrained output that is far less likely is not used (warning "forced-term").

        Raises:
            UsageError: a translation cannot come out: the vocabulary cannot write it, or it is too long.
        """
        check_terms(glossary, self.tokenizers.target, self.longest_source)
        return replace(self, glossary=glossary.in_language(self.config.data.source))

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
        sources, confidence = read_source_model(directory, tokenizers), read_confidence(directory)
        number_format = parse_precision(precision)
        if ensemble:
            runs = [directory, *(RunDirectory.existing(Path(other)) for other in ensemble)]
            opened = open_ensemble(engine, runs, device=device, precision=number_format)
        else:
            opened = open_engine(engine, directory, config, tokenizers, device=device, precision=number_format)
        return cls(config, tokenizers, opened, sources, confidence, run=directory)

    @classmethod
    def load_to_serve(cls, run: Path, device: str, *, engine: str, precision: str, beam: int | None) -> Self:
        """Open a run to serve it with this beam size; None is that of the run. For the other options see `load`."""
        loaded = cls.load(run, device=device, engine=engine, precision=precision)
        overrides = [] if beam is None else [f"search.beam_size={beam}"]
        return replace(loaded, config=with_overrides(loaded.config, overrides))

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
        if beam_size is not None:
            options = replace(options, beam_size=beam_size)
        if n_best is not None:
            options = replace(options, n_best=n_best)
        options = options.complete(vars(self.config.search))
        request = Request("translate", texts, options, prefixes, forbidden, required, stop)
        return self.to(source=source, target=target)._translate(request)

    def translate_file(
        self,
        source: str | Path,
        output: str | Path,
        *,
        form: str | None = None,
        bilingual: bool = False,
        options: SearchOptions = DEFAULTS,
    ) -> DocumentReport:
        """Translate a document: subtitles, HTML, Markdown, office files, books or catalogues of messages.

        The output is the source with its texts replaced; it appears when it is complete. How a format is read is
        set by `documents.ReadOptions`, with `translate_document`.

        Args:
            source: the file.
            output: file to write.
            form: name of the format (`documents.document.FORMATS`); None tells it by the name and the content.
            bilingual: whether source and translation stand beside each other, where the format can.
            options: options of the search.

        Raises:
            DataError: the file cannot be read, or is of no known format.
            WriteError: the output cannot be written.
        """
        document = read_file(Path(source), form, ReadOptions(str(source), *self.config.languages))
        if document is None:
            raise DataError(f"{source} is of no known format. Plain text is translated by lines: translate().")
        data, report = self.translate_document(document, bilingual=bilingual, options=options)
        with writing(Path(output)):
            write_atomically(Path(output), data)
        return report

    def translate_document(
        self,
        document: Document,
        *,
        bilingual: bool = False,
        options: SearchOptions = DEFAULTS,
        advance: Callable[[int], object] = lambda count: None,
    ) -> tuple[bytes, DocumentReport]:
        """Return the file of a document with its translations, and the report on it.

        Args:
            document: the document (`documents.document.read_document`).
            bilingual: see `translate_file`.
            options: options of the search.
            advance: called with the number of texts that are done since the last call.
        """
        options = with_alignment(options, document)

        def fields(texts: list[str]) -> Iterator[UnitFields]:
            for first in range(0, len(texts), CALL_LINES):
                batch = texts[first : first + CALL_LINES]
                yield from map(unit_fields, self.translate(batch, options=options))
                advance(len(batch))

        return write_document(document, fields, bilingual=bilingual)

    def _translate(self, request: Request) -> list[Translation]:
        return self._finish(request, *self._begin(request, self.splitter(request.options).lines(request.texts)))

    def _begin(self, request: Request, lines: Sequence[Line]) -> tuple[list[Stage], list[Draft]]:
        """Return the stages of a call, and its lines as they are to be searched."""
        stages = [stage(self, request) for stage in self.stages]
        drafts = [
            Draft(number, line, request.options, tuple(map(Part, line.parts))) for number, line in enumerate(lines)
        ]
        for stage in stages:
            drafts = stage.before(drafts)
        return stages, drafts

    def _finish(self, request: Request, stages: Sequence[Stage], drafts: Sequence[Draft]) -> list[Translation]:
        """Search, and return the translations of the lines of a call."""
        assembler = Assembler(self.tokenizers, request.options, self.longest_source, stages)
        found = search(drafts, stages, self.engine, self.longest_source, request.stop)
        return list(map(assembler.translation, found))

    def check_forced(self, text: str, name: str) -> None:
        """Raise `UsageError` for a text, called `name`, that no output can hold."""
        length = len(encode_forced(self.tokenizers.target, text, name)) if text.strip() else 0
        if length > self.longest_source:
            raise UsageError(
                f"the {name} has {length} tokens, but the longest output of this model is {self.longest_source}."
            )

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, target: str = "", source: str = ""
    ) -> list[Translation]:
        """Return given translations with the scores that the model gives them: the targets are forced as outputs.

        Each pair is one part, however long; a pair with an empty side, or longer than the model, has no candidate.
        `Candidate.score` is the mean log-probability of a token, its end mark included, in nats. For a model of
        several languages, `target` and `source` choose the direction; see `to`.
        """
        return self.to(source=source, target=target)._score(sources, targets)

    def _score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Translation]:
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
        request = Request("score", sources, options)
        stages, drafts = self._begin(request, lines)
        forced = [
            replace(draft, first=replace(draft.first, prefix=(*draft.first.prefix, *ids, EOS)))
            for draft, ids in zip(drafts, outputs, strict=True)
        ]
        scored = self._finish(request, stages, forced)
        return [
            found
            if line.parts
            else Translation(line.text, [], truncated=len(row) > longest or len(ids) > longest_output)
            for found, line, row, ids in zip(scored, lines, rows, outputs, strict=True)
        ]

    @property
    def prefix(self) -> tuple[int, ...]:
        """Tokens that every output begins with, and that are no part of it: the symbol of the target language."""
        return self.tokenizers.target.language_prefix(self.config.data.target)

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
            UsageError: the translator has a glossary, whose terms cannot be required of one step after another;
                the options have a `min_confidence`, which is known at the end alone; or as of `to`.
        """
        options = replace(options, beam_size=1, n_best=1).complete(vars(self.config.search))
        return self.to(source=source, target=target)._stream(Request("stream", [text], options, [prefix]))

    def _stream(self, request: Request) -> Generator[str, None, bool]:
        _, (draft,) = self._begin(request, self.splitter(request.options).lines(request.texts))
        line, ended = draft.line, set[int]()
        if line.placeholders:  # only a whole output can be checked for them
            (found,) = self._translate(request)
            yield from filter(None, [found.translation])
            return found.truncated

        def stream_part(part: int, ids: list[int]) -> Iterator[str]:
            def tokens() -> Iterator[int]:
                for token in self.engine.stream(self.shortened(ids), request.options, draft.constraints(part)):
                    if token == EOS:
                        ended.add(part)
                    yield token

            return growing_text(self.tokenizers.target, tokens(), line.part_text(part))

        yield from line.stream(stream_part(part, ids) for part, ids in enumerate(line.parts))
        return len(ended) < len(line.parts) or any(len(ids) > self.longest_source for ids in line.parts)

    def splitter(self, options: SearchOptions = DEFAULTS) -> Splitter:
        """Return the splitter of lines into the parts that are translated separately."""
        return Splitter.of(self, options)

    def shortened(self, ids: list[int]) -> list[int]:
        """Cut a source at the limit of the model."""
        return ids[: self.longest_source]

    @cached_property
    def longest_source(self) -> int:
        """Maximum length of a source in tokens; the end mark needs one more position."""
        if isinstance(self.engine, LimitedEngine):  # for an ensemble, the lowest limit of its models
            return self.engine.longest
        return self.config.model.max_positions - 1


def warnings_of(translation: Translation) -> list[str]:
    """Return the warnings about a translation, in words."""
    return [TRUNCATED] * translation.truncated + [WARNINGS[name] for name in translation.warnings]


def unit_fields(translation: Translation) -> UnitFields:
    """Return what a document needs of the translation of a unit."""
    doubts = warnings_of(translation) + ["low confidence"] * (translation.confidence_level == "low")
    return translation.translation, translation.alignment, doubts
