"""Compiled layers: the results of eager layers, and one compilation for each of a few shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.runs.parts import Interrupting, make_config, metrics, write_corpus
from tests.tolerances import approx, assert_close, within
from tests.training.parts import (
    BOS,
    CPU,
    EOS,
    PAD,
    CollectingListener,
    PairUpdates,
    TrainerHarness,
    needs_compiler,
    random_pairs,
    tiny_model,
    translation_objective,
    validation_report,
)
from torch import Tensor

from manyheads.config.schema import Config, TrainingConfig
from manyheads.data.batch import Batch, make_batch
from manyheads.data.sampler import Sampler
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import ConfigError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.runs.bench_train import bench_train
from manyheads.runs.train import train
from manyheads.tasks.translation.translator import Translator
from manyheads.training import compilation
from manyheads.training.distributed import ALONE
from manyheads.training.objective import corpus_nll
from manyheads.training.update import Updater

# torch's compiler raises these warnings in its own code, and hides them only where warnings are no errors
pytestmark = [
    pytest.mark.exact_bits(
        "torch compiles nothing within a dispatch mode; compiled code is compared with eager code"
    ),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]


class CountingBackend:
    """A backend of torch.compile that counts the graphs, and runs them without compiling."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.count += 1
        return graph.forward


@pytest.fixture
def graphs() -> Iterator[CountingBackend]:
    """Replace the backend of torch.compile; the tracing before it is torch's own."""
    counting = CountingBackend()
    with torch.compiler.set_stance("default", force_backend=counting):
        yield counting


def updater_of(model: EncoderDecoder, **settings: Any) -> Updater:
    config = TrainingConfig(**settings)
    return Updater(translation_objective(model.train(), config), config, device=CPU, precision="fp32", world=ALONE)


def gradients(updater: Updater, batch: Batch) -> dict[str, Tensor]:
    """Return the gradients of a batch by parameter name, its loss and its NLL."""
    ((_, loss, nll),) = updater.gradients([batch], batch.target_tokens)
    found = {name: parameter.grad.clone() for name, parameter in updater.model.named_parameters()}  # type: ignore[union-attr]
    updater.zero_grad()
    return found | {"loss": loss, "nll": nll}


def batches_of(*rows: int) -> list[Batch]:
    """Return a batch of random pairs for each number of rows."""
    updates = PairUpdates(*random_pairs(sum(rows)))
    ends = np.cumsum(rows).tolist()
    return [updates.batch(range(end - count, end)) for count, end in zip(rows, ends, strict=True)]


def assert_equal_to_eager(batches: list[Batch], **settings: Any) -> None:
    eager, compiled = (
        updater_of(tiny_model(**settings).float(), label_smoothing=0.1, compile=compile)
        for compile in (False, True)
    )
    for batch in batches:
        expected, found = gradients(eager, batch), gradients(compiled, batch)
        assert_close(found, expected)


@needs_compiler
@pytest.mark.slow
@pytest.mark.weekly
def test_compiled_layers_have_the_losses_and_gradients_of_eager_layers() -> None:
    """The backend is torch's own compiler, and batches have different numbers of rows."""
    assert_equal_to_eager(batches_of(5, 7), positions="rotary")


@pytest.mark.slow
def test_compiled_dropout_is_drawn_anew_each_time_and_keeps_the_mean(graphs: CountingBackend) -> None:
    """Both layers of a model have dropout masks of their own."""
    updater = updater_of(tiny_model(dropout=0.5, word_dropout=0.1), compile=True)
    plain = updater_of(tiny_model(dropout=0.5, word_dropout=0.1))
    (batch,) = batches_of(200)
    found, expected = ([float(gradients(each, batch)["nll"]) for _ in range(12)] for each in (updater, plain))
    assert len(set(found)) == 12
    assert np.mean(found) == within(np.mean(expected), 3 * np.std(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "post", "positions": "learned"},
        pytest.param(
            {"activation": "swiglu", "positions": "rotary", "bias": False, "num_decoder_layers": 3},
            marks=pytest.mark.weekly,
        ),
    ],
    ids=lambda settings: " ".join(map(str, settings.values())),
)
def test_every_kind_of_compiled_layer_equals_the_eager_layer(
    graphs: CountingBackend, settings: dict[str, Any]
) -> None:
    assert_equal_to_eager(batches_of(5, 7, 1), **settings)
    assert graphs.count > 0


@pytest.mark.slow
def test_padding_for_compilation_stays_within_the_learned_positions(graphs: CountingBackend) -> None:
    batch = make_batch([[5] * 29], [[5] * 27], pad=PAD, bos=BOS, eos=EOS)
    assert_equal_to_eager([batch], positions="learned", max_positions=30)


@pytest.mark.slow
@pytest.mark.weekly
def test_an_epoch_has_few_shapes_and_each_is_compiled_once(graphs: CountingBackend) -> None:
    """Equal layers share their compiled code, for any number of rows."""
    rng = np.random.default_rng(5)
    lengths = rng.lognormal(2.2, 0.5, 900).astype(np.int64).clip(2, 24)
    others = (lengths * rng.uniform(0.8, 1.2, len(lengths))).astype(np.int64).clip(2, 24)
    updater = updater_of(tiny_model(num_encoder_layers=2, num_decoder_layers=3), compile=True)
    seen: set[tuple[int, int, int]] = set()
    for pairs in Sampler(lengths, others, batch_tokens=250).epoch(0):
        rows = [[[5] * (side[pair] - 1) for pair in pairs] for side in (lengths, others)]
        batch = make_batch(*rows, pad=PAD, bos=BOS, eos=EOS)
        seen.add((*batch.source.shape, batch.target_in.size(1)))
        gradients(updater, batch)
    shapes = updater.layers.shapes
    assert len(seen) > 30
    assert len(shapes) < 12
    encoders = {(several, source) for several, source, _ in shapes}
    assert graphs.count == len(encoders) + len(shapes)


@pytest.mark.slow
def test_validation_and_decoding_compile_nothing(graphs: CountingBackend) -> None:
    """Their shapes differ, and the model is not compiled between updates."""
    sources, targets = random_pairs(13)
    model, counts = tiny_model(), []

    def validate(step: int) -> Any:
        counts.append(graphs.count)
        nats, tokens = corpus_nll(model, sources, targets, bos=BOS, eos=EOS)
        stepper = EncoderDecoderStepper(model, torch.tensor([[5, 6, EOS]]))
        stepper.step(torch.tensor([BOS]))
        counts.append(graphs.count)
        return validation_report(step, nats / tokens)

    names = [name for name, _ in model.named_parameters()]
    harness = TrainerHarness(
        model, PairUpdates(sources, targets), compile=True, validate=validate, save_every=2, steps=4
    )
    harness.trainer.run()
    assert counts[0] == counts[1] > 0
    assert counts[2] == counts[3]
    assert not any("forward" in vars(module) for module in model.modules())
    assert [*harness.saved[-1][0].model] == names


@pytest.mark.slow
def test_too_many_recompilations_are_an_error(graphs: CountingBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()
    monkeypatch.setattr(compilation, "_MOST_SHAPES", 1)
    updater = updater_of(tiny_model(), compile=True)
    gradients(updater, batches_of(3)[0])
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        gradients(updater, make_batch([[5] * 30] * 3, [[5] * 40] * 3, pad=PAD, bos=BOS, eos=EOS))
    assert not any("forward" in vars(module) for module in updater.model.modules())


# --- training runs ---


def config_of(folder: Path, **training: Any) -> Config:
    root = folder / "corpus"
    corpus = root if root.exists() else write_corpus(root)
    settings = {"compile": True, "log_every": 1} | training
    return make_config(corpus, model={"dropout": 0.0}, training=settings)


def losses(run: Path) -> list[float]:
    return [record["loss"] for record in metrics(run)]


@needs_compiler
@pytest.mark.slow
@pytest.mark.weekly
def test_a_compiled_run_trains_resumes_and_translates_as_an_eager_run(
    graphs: CountingBackend, tmp_path: Path
) -> None:
    """Moving averages, R-Drop and micro-batches are included."""
    settings = {"accumulation": 2, "r_drop": 1.0, "ema": 0.9}
    train(config_of(tmp_path, **settings, compile=False), tmp_path / "eager", listener=CollectingListener())
    with pytest.raises(KeyboardInterrupt):
        train(config_of(tmp_path, **settings), tmp_path / "compiled", listener=Interrupting(step=9))
    train(config_of(tmp_path, **settings), tmp_path / "compiled", listener=CollectingListener())
    assert graphs.count > 0
    assert losses(tmp_path / "compiled") == approx(losses(tmp_path / "eager"))
    compiled, eager = (
        Translator.load(tmp_path / name).translate(["der Hund singt"]) for name in ("compiled", "eager")
    )
    assert [result.translation for result in compiled] == [result.translation for result in eager]


@needs_compiler
@pytest.mark.slow
@pytest.mark.weekly
def test_the_training_benchmark_leaves_out_the_time_of_compilation(graphs: CountingBackend, tmp_path: Path) -> None:
    """Padding for compilation is counted."""
    compiled = bench_train(config_of(tmp_path), rounds=1, updates=5, listener=CollectingListener())
    eager = bench_train(config_of(tmp_path, compile=False), rounds=1, updates=5, listener=CollectingListener())
    assert compiled.padding > eager.padding
    assert compiled.median > eager.median / 20, "compiling takes a hundred times as long as an update"


def test_training_without_a_compiler_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing compiler, and nothing is written."""
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("/nowhere/g++",))  # what CXX sets in a new process
    with pytest.raises(ConfigError, match=r"training\.compile = true, but .* A CPU needs a C\+\+ compiler"):
        train(config_of(tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()
