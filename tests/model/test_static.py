"""Steps in fixed tensors: the same numbers as any others, by code that is made once a size.

Most tests run the function that would be compiled as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from tests.model.samples import BOS, random_ids, scrambled_model
from tests.model.test_stepper import HISTORIES, check_history, padded_source
from tests.training.parts import needs_compiler
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.model import static_tensors
from manyheads.model.decoding import EncoderDecoderStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.packed import PackedModel
from manyheads.model.static import StaticModel, StaticStepper
from manyheads.model.static_tensors import Size

WIDTH = 5

# torch's compiler warns of itself
pytestmark = [pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def started(model: EncoderDecoder, source: Tensor) -> StaticStepper:
    return StaticStepper(StaticModel(PackedModel(model)), source, WIDTH)


@pytest.fixture
def eager() -> Iterator[None]:
    """Nothing is compiled."""
    with torch.compiler.set_stance("force_eager"):
        yield


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_after_any_selection_steps_give_the_teacher_forced_probabilities(history, positions) -> None:
    model = scrambled_model(positions=positions, num_encoder_layers=1, num_decoder_layers=2)
    check_history(model, padded_source(model), [*history, None], started)


@pytest.mark.usefixtures("eager")
def test_so_do_those_of_every_variant(model) -> None:
    check_history(model, padded_source(model), [*HISTORIES["sentences that end"], None], started)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(3))
def test_a_text_that_outgrows_its_tensors_goes_on_in_larger_ones(seed, monkeypatch) -> None:
    monkeypatch.setattr(static_tensors, "PLACES", (11, 16, 48))
    generator = torch.Generator().manual_seed(seed)
    model = scrambled_model(seed, num_encoder_layers=1, positions="rotary")
    rows, history = 3, []
    for _ in range(20):
        after = int(torch.randint(1, WIDTH + 1, (1,), generator=generator))
        history.append(sorted(torch.randint(rows, (after,), generator=generator).tolist()))
        rows = after
    sizes = []

    def start(model: EncoderDecoder, source: Tensor) -> StaticStepper:
        stepper = started(model, source)
        monkeypatch.setattr(stepper.model, "step", recorded(stepper.model.step))
        return stepper

    def recorded(step: Callable[..., None]) -> Callable[..., None]:
        def take(held: static_tensors.StaticTensors, told: Any) -> None:
            sizes.append(held.size.places)
            step(held, told)

        return take

    check_history(model, padded_source(model), history, start)
    assert sizes == [11] * 11 + [16] * 5 + [48] * 4


@pytest.mark.usefixtures("eager")
@torch.no_grad()
def test_what_was_there_before_leaves_no_trace() -> None:
    """Not even what is no number."""
    model = scrambled_model(num_encoder_layers=1)
    source, fixed = padded_source(model), StaticModel(PackedModel(model))
    right = StaticStepper(fixed, source, WIDTH).step(torch.full((3,), BOS))
    for tensor in fixed.held[Size(4, WIDTH, 32)].tensors():
        if tensor.is_floating_point() and tensor.dim() == 4:
            tensor.fill_(math.nan)
    assert StaticStepper(fixed, source[:2], WIDTH).step(torch.full((2,), BOS)).equal(right[:2])


@pytest.mark.usefixtures("eager")
@torch.no_grad()
def test_what_stands_in_the_padding_of_a_source_is_nothing_to_it(monkeypatch) -> None:
    """Compiled code of ours writes nothing there."""
    model = scrambled_model(num_encoder_layers=1)
    source = padded_source(model)
    right = started(model, source).step(torch.full((3,), BOS))
    encode = PackedModel.encode

    def with_rubbish(self: PackedModel, source: Tensor) -> Any:
        memory, bias = encode(self, source)
        for tensor in (tensor for pair in memory for tensor in pair):
            tensor[1, :, 8:], tensor[2, :, 3:] = math.nan, math.inf
        return memory, bias

    monkeypatch.setattr(PackedModel, "encode", with_rubbish)
    assert started(model, source).step(torch.full((3,), BOS)).equal(right)


@pytest.mark.usefixtures("eager")
@torch.no_grad()
def test_what_a_step_has_found_stays_when_the_next_one_is_taken() -> None:
    model = scrambled_model(num_encoder_layers=1)
    stepper = started(model, padded_source(model))
    found = stepper.step(torch.full((3,), BOS))
    kept = found.clone()
    stepper.step(torch.full((3,), 7))
    assert found.equal(kept)


@pytest.mark.usefixtures("eager")
@torch.no_grad()
def test_two_selections_between_steps_are_one() -> None:
    model, found = scrambled_model(num_encoder_layers=1), []
    for selections in ([[1, 0, 3, 2, 5, 4], [0, 0, 2, 2, 5, 4]], [[1, 1, 3, 3, 4, 5]]):
        stepper = started(model, padded_source(model))
        stepper.step(torch.full((3,), BOS))
        stepper.select(torch.tensor([0, 0, 1, 1, 2, 2]))
        stepper.step(torch.arange(7, 13))
        for rows in selections:
            stepper.select(torch.tensor(rows))
        found.append(stepper.step(torch.arange(17, 23)))
    assert found[0].equal(found[1])


@pytest.mark.usefixtures("eager")
@torch.inference_mode()
def test_steps_in_half_the_bits_are_near_those_of_the_others() -> None:
    model = scrambled_model(num_encoder_layers=1, positions="rotary").float()
    packed, source = PackedModel(model, torch.bfloat16), padded_source(model)
    right = EncoderDecoderStepper(model, source).step(torch.full((3,), BOS))
    fixed = StaticModel(packed)
    found = StaticStepper(fixed, source, WIDTH).step(torch.full((3,), BOS))
    assert fixed.held[Size(4, WIDTH, 32)].keys[0].dtype == torch.bfloat16
    assert model.output.weight.dtype == torch.float32, "the model keeps its own"
    assert found.dtype == torch.float32
    assert 1e-4 < float((found - right).abs().max()) < 0.3


def test_the_size_is_the_smallest_that_holds_all() -> None:
    assert Size.holding(1, 7, 32) == Size(1, 7, 32)
    assert Size.holding(2, 7, 33) == Size(4, 7, 128)
    assert Size.holding(5, 1, 129) == Size(16, 1, 512)
    for sentences, places in ((17, 1), (1, 513)):
        with pytest.raises(ValueError, match="more than any size"):
            Size.holding(sentences, 1, places)


@pytest.mark.usefixtures("eager")
@torch.no_grad()
def test_more_rows_than_there_is_room_for_are_refused() -> None:
    model = scrambled_model(num_encoder_layers=1)
    stepper = started(model, padded_source(model))
    stepper.select(torch.tensor([0, 1, 1, 1, 1, 1]))
    with pytest.raises(ValueError, match="6 rows of a sentence are more than the 5"):
        stepper.select(torch.tensor([0, 1, 2, 3, 4, 5, 5]))


@pytest.mark.usefixtures("eager")
@torch.no_grad()
def test_the_end_of_learned_positions_is_told() -> None:
    model = scrambled_model(num_encoder_layers=1, positions="learned", max_positions=11)
    stepper = started(model, padded_source(model))
    for _ in range(11):
        stepper.step(torch.full((3,), BOS))
    with pytest.raises(UsageError, match=r"max_positions = 11"):
        stepper.step(torch.full((3,), BOS))


# --- code ---


@needs_compiler
def test_compiled_steps_are_those_of_the_model() -> None:
    """By torch's own compiler; rows change, and a sentence ends."""
    import torch._inductor.config  # slow

    model = scrambled_model(num_encoder_layers=1, num_decoder_layers=1, norm="post", positions="learned").float()
    history = [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], [0, 1, 5, 4], None]
    with torch._inductor.config.patch(compile_threads=1):  # more are processes, which take seconds to start
        check_history(model, padded_source(model), history, started)


class Graphs:
    """A compiler that keeps what it is given, and runs it as it is."""

    def __init__(self) -> None:
        self.found: list[torch.fx.GraphModule] = []
        self.fixed: list[set[int]] = []  # of each graph, which of its inputs do not move

    def dynamo(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """In the place of all of torch's own."""
        self.found.append(graph)
        return graph.forward

    def inductor(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """In the place of what writes code."""
        from torch._inductor.compile_fx import compile_fx  # slow to import, and warns

        found: Callable[..., Any] = compile_fx(graph, inputs, inner_compile=self.inner)
        return found

    def inner(self, graph: torch.fx.GraphModule, inputs: Any, **settings: Any) -> Callable[..., Any]:
        self.found.append(graph)
        self.fixed.append(set(settings["static_input_idxs"]))
        return graph


@pytest.fixture
def graphs() -> Graphs:
    """None yet."""
    torch.compiler.reset()
    return Graphs()


def test_nothing_moves_that_a_step_reads_or_writes(graphs) -> None:
    """A CUDA graph has to copy what moves, and is not made at all where that is written to."""
    model = scrambled_model(num_encoder_layers=1, num_decoder_layers=1, positions="rotary")
    with torch.compiler.set_stance("default", force_backend=graphs.inductor):
        check_history(model, padded_source(model), [None, None], started)
    (graph,), (fixed,) = graphs.found, graphs.fixed
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    written = [node for node in graph.graph.nodes if node.target is torch.ops.aten.copy_.default]
    assert len(inputs) > 20
    assert fixed == set(range(len(inputs)))
    assert len(written) == 4, "keys, values, what is seen and what is found"
    assert {node.args[0] for node in written} <= set(inputs)
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    assert set(output.all_input_nodes) <= set(written), "nothing comes out that the next run would overwrite"


def test_code_is_made_once_a_size(graphs) -> None:
    """Whatever the sentences, the place and the mode of the caller."""
    model = scrambled_model(num_encoder_layers=1, num_decoder_layers=1).float()
    fixed, size = StaticModel(PackedModel(model)), model.source_embedding.tokens.num_embeddings

    def steps(count: int, length: int, width: int) -> int:
        stepper = StaticStepper(fixed, random_ids(count, length, size), width)
        for _ in range(3):
            stepper.step(torch.full((count,), BOS))
        return len(graphs.found)

    with torch.compiler.set_stance("default", force_backend=graphs.dynamo):
        with torch.no_grad():
            assert steps(2, 11, 3) == 1
            assert steps(4, 32, 3) == 1
        with torch.inference_mode():
            assert steps(3, 5, 3) == 1
            assert steps(2, 33, 2) == 2
        model.train().eval()
        with torch.no_grad():
            model.output.bias += 1
        assert steps(2, 11, 3) == 2


@needs_cuda
@torch.inference_mode()
def test_on_a_gpu_steps_are_replayed_from_graphs() -> None:
    model = scrambled_model(num_encoder_layers=1, positions="rotary").float().cuda()
    source = random_ids(1, 11, model.source_embedding.tokens.num_embeddings).cuda()
    fixed, usual = StaticModel(PackedModel(model)), EncoderDecoderStepper(model, source)
    for _ in range(2):  # torch runs the code once as it is, then records it
        stepper = StaticStepper(fixed, source, WIDTH)
        stepper.step(torch.tensor([BOS]))
    stepper = StaticStepper(fixed, source, WIDTH)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = [stepper.step(torch.tensor([token])) for token in (BOS, 7, 11)]
    launches = [event for event in profile.key_averages() if event.key == "cudaGraphLaunch"]
    assert sum(event.count for event in launches) == 3
    for one, token in zip(found, (BOS, 7, 11), strict=True):
        torch.testing.assert_close(one, usual.step(torch.tensor([token], device="cuda")), rtol=0, atol=1e-4)
