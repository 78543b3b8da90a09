"""Untrusted model directories are refused without executing code, using much memory or reading other files."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.checkpoint.test_directory import begin_run, make_config, make_model, named_tensors

from manyheads.checkpoint import RunDirectory, read_json, read_tensors
from manyheads.checkpoint.arrays import TensorFile
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.checkpoint.files import StoredTensor, read_header
from manyheads.errors import RunError
from manyheads.tensors.models import load_model

SOURCE = Path(__file__).parent.parent.parent / "src"
MOST_MEMORY = 100 * 2**20  # bytes


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a valid run with weights."""
    directory = begin_run(tmp_path / "run")
    directory.publish(named_tensors(make_model(make_config())))
    load_run(tmp_path / "run")
    return tmp_path / "run"


def load_run(path: Path) -> Any:
    """Load the configuration, the tokenizers and the model of a run."""
    directory = RunDirectory.existing(path)
    config = directory.config()
    return load_model(directory, config, directory.tokenizers(config))


class PickleBomb:
    """Create a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def header(content: Any, data: bytes = b"") -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(first: int, last: int, shape: list[int] | None = None) -> dict[str, Any]:
    return {"dtype": "F32", "shape": shape or [(last - first) // 4], "data_offsets": [first, last]}


def write_weights(content: bytes) -> Callable[[Path], None]:
    return lambda run: (run / "model.safetensors").write_bytes(content) and None


def write_config(content: bytes) -> Callable[[Path], None]:
    return lambda run: (run / "config.json").write_bytes(content) and None


def sparse(name: str, size: int, head: bytes = b"") -> Callable[[Path], None]:
    """Return a function that writes a sparse file of this size."""

    def write(run: Path) -> None:
        with (run / name).open("wb") as file:
            file.write(head)
            file.truncate(size)

    return write


def change_config(**model: Any) -> Callable[[Path], None]:
    def write(run: Path) -> None:
        content = json.loads((run / "config.json").read_text(encoding="utf-8"))
        content["model"] |= model
        (run / "config.json").write_text(json.dumps(content), encoding="utf-8")

    return write


def change_weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def write(run: Path) -> None:
        tensors = load_file(run / "model.safetensors")
        change(tensors)
        save_file(tensors, run / "model.safetensors")

    return write


def link(name: str, outside: str = "/etc/passwd") -> Callable[[Path], None]:
    def write(run: Path) -> None:
        (run / name).unlink()
        (run / name).symlink_to(outside)

    return write


def link_twice(name: str) -> Callable[[Path], None]:
    """Return a function that replaces a file by a link to a link out of the folder."""

    def write(run: Path) -> None:
        (run / "second").symlink_to("/etc/passwd")
        link(name, "second")(run)

    return write


def pipe(name: str) -> Callable[[Path], None]:
    def write(run: Path) -> None:
        (run / name).unlink()
        os.mkfifo(run / name)

    return write


def set_value(name: str, value: float) -> Callable[[Path], None]:
    """Return a function that changes one value of a tensor."""
    return change_weights(lambda tensors: tensors[name].view(-1)[0].fill_(value) and None)


def smaller_source_vocabulary(run: Path) -> None:
    """Leave out a symbol of the source alone; nothing has recorded the former tokenizer."""
    content = json.loads((run / "tokenizer.source.json").read_text(encoding="utf-8"))
    content["symbols"].pop()
    (run / "tokenizer.source.json").write_text(json.dumps(content), encoding="utf-8")
    (run / "environment.json").unlink()


def write_environment(content: object) -> Callable[[Path], None]:
    return lambda run: (run / "environment.json").write_text(json.dumps(content), encoding="utf-8") and None


def to_float16(tensors: dict[str, torch.Tensor]) -> None:
    tensors["output.bias"] = tensors["output.bias"].half()


def move_to_parent(tensors: dict[str, torch.Tensor]) -> None:
    tensors["../../output.bias"] = tensors.pop("output.bias")


MANY = b"[" + b"0," * 2_000_000 + b"0]"
DUPLICATES = b'{"a": %s, "a": %s}' % ((json.dumps(entry(0, 8)).encode(),) * 2)
WRONG_HEADER = "model.safetensors is damaged: its header has"
REFUSED = "model.safetensors is damaged: Error while deserializing header: "
MISFIT = "model.safetensors does not fit the configuration and the tokenizers beside it:"
NO_RUN = "run is not a run of manyheads: it has no config.json"
TOO_MANY = "is no file of ours: it holds up to 2,000,001 values, at most 1,000,000 make sense"
TOO_LONG = "is no file of ours: it has 10,000,000,000 bytes, and at most 67,108,864 make sense"
HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "header of 2**63 bytes": (
        write_weights((2**63).to_bytes(8, "little") + b"{}"), f"{WRONG_HEADER} 9,223,372,036,854,775,808 bytes"
    ),
    "header longer than the file": (
        write_weights((50).to_bytes(8, "little") + b"{}"), f"{WRONG_HEADER} 50 bytes, and at most 2 fit"
    ),
    "header of 90 MB": (
        sparse("model.safetensors", 10**8, (9 * 10**7).to_bytes(8, "little")), f"{WRONG_HEADER} 90,000,000 bytes"
    ),
    "header of two million names": (write_weights(header(MANY)), f"model.safetensors {TOO_MANY}"),
    "header that is a list": (
        write_weights(header(b"[1]")), REFUSED
    ),
    "header nested deeply": (write_weights(header(b"[" * 100_000)), "model.safetensors is damaged: "),
    "a name twice": (
        write_weights(header(DUPLICATES, b"\0" * 8)), "model.safetensors is damaged: a name stands in it twice"
    ),
    "overlapping tensors": (write_weights(header({"a": entry(0, 8), "b": entry(4, 12)}, b"\0" * 12)), REFUSED),
    "holes between tensors": (write_weights(header({"a": entry(0, 8), "b": entry(12, 20)}, b"\0" * 20)), REFUSED),
    "bytes behind the tensors": (
        write_weights(header({"a": entry(0, 8)}, b"\0" * 99)),
        REFUSED,
    ),
    "a shape without its bytes": (
        write_weights(header({"a": entry(0, 8, [10**12])}, b"\0" * 8)),
        REFUSED,
    ),
    "a negative offset": (write_weights(header({"a": entry(-8, 0)})), REFUSED),
    "cut weights": (lambda run: os.truncate(run / "model.safetensors", 3_000), WRONG_HEADER),
    "empty weights": (write_weights(b""), f"{WRONG_HEADER} 0 bytes, and at most 0 fit"),
    "../ in a name": (change_weights(move_to_parent), f"{MISFIT} ../../output.bias is unknown"),
    "numbers of another type": (
        change_weights(to_float16),
        "model.safetensors holds numbers of another type: output.bias is torch.float16, not torch.float32",
    ),
    "a weight that is NaN": (
        set_value("decoder_norm.weight", math.nan), "decoder_norm.weight holds values that are not finite"
    ),
    "a weight that is infinite": (
        set_value("output.bias", -math.inf), "is damaged: output.bias holds values that are not finite"
    ),
    "a weight of 1e38": (
        set_value("output.bias", -1e38), "output.bias holds 1e+38, and a trained weight is at most"
    ),
    "a smaller vocabulary on one side": (
        smaller_source_vocabulary, "run have 24 and 25 tokens, and the model has one vocabulary. Copy"
    ),
    "checksums that are a number": (
        write_environment({"tokenizer_sha256": 5}), "run is damaged: its tokenizer_sha256 are no two checksums"
    ),
    "three checksums": (
        write_environment({"tokenizer_sha256": ["a", "b", "c"]}), "its tokenizer_sha256 are no two checksums"
    ),
    "a wider configuration": (
        change_config(d_model=32),
        f"{MISFIT} decoder_layers.0.around_cross_attention.norm.bias is (16,), not (32,)",
    ),
    "a configuration of 10**9 layers": (
        change_config(num_encoder_layers=10**9),
        "config.json: model.num_encoder_layers = 1000000000 is not a whole number above 0 and at most 1,000",
    ),
    "a configuration of 1,000 layers": (
        change_config(num_encoder_layers=1_000),
        "model.safetensors does not fit: its 36 tensors cannot be those of 1001 layers",
    ),
    "a configuration of 65,536 columns": (
        change_config(d_model=65_536), f"{MISFIT} decoder_layers.0.around_cross_attention.norm.bias is (16,)"
    ),
    "a configuration of 10**18 columns": (
        change_config(d_model=2 * 10**18), "config.json: model.d_model = 2000000000000000000 is not a whole number"
    ),
    "a configuration of a million positions": (
        change_config(positions="learned", max_positions=10**6),
        f"{MISFIT} source_embedding.positions.table.weight is missing",
    ),
    "a newer format": (
        write_config(b'{"format": 2}'), "config.json: format 2 is newer than this program"
    ),
    "huge JSON": (sparse("config.json", 10**10, b"{"), f"config.json {TOO_LONG}"),
    "JSON of two million values": (write_config(MANY), f"config.json {TOO_MANY}"),
    "JSON nested deeply": (write_config(b"[" * 10**5), "config.json: this is no JSON: "),
    "a huge number": (write_config(b'{"format": 1%s}' % (b"0" * 10**6)), "config.json: this is no JSON: "),
    "a huge tokenizer": (sparse("tokenizer.source.json", 10**10), f"tokenizer.source.json {TOO_LONG}"),
    "a tokenizer of two million values": (
        lambda run: (run / "tokenizer.source.json").write_bytes(MANY) and None, f"tokenizer.source.json {TOO_MANY}"
    ),
    "huge environment": (sparse("environment.json", 10**10), f"environment.json {TOO_LONG}"),
    "configuration linked out": (link("config.json"), "config.json is a link out of its folder"),
    "weights linked out": (link("model.safetensors"), "model.safetensors is a link out of its folder"),
    "tokenizer linked out": (link("tokenizer.source.json"), "tokenizer.source.json is a link out of its folder"),
    "environment linked out": (link("environment.json"), "environment.json is a link out of its folder"),
    "a link to a link out": (link_twice("config.json"), "config.json is a link out of its folder"),
    "a link to a missing file": (link("config.json", "missing"), f"{NO_RUN}. Give the folder that"),
    "weights that are a pipe": (pipe("model.safetensors"), "run has no model.safetensors yet"),
    "configuration that is a device": (link("config.json", "/dev/zero"), NO_RUN),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_run_is_refused_quickly(run: Path, name: str) -> None:
    damage, message = HOSTILE[name]
    damage(run)
    start = time.perf_counter()
    with pytest.raises(RunError, match=re.escape(message)):
        load_run(run)
    assert time.perf_counter() - start < 20, "a pipe or a device would be read for ever"


def first(**changes: Any) -> bytes:
    """Return a file of one tensor of two floats, whose entry in the header is changed; None removes a part."""
    parts = {**entry(0, 8), **changes}
    return header({"a": {name: part for name, part in parts.items() if part is not None}}, b"\0" * 8)


CONTRADICTIONS: dict[str, bytes] = {
    "no dtype": first(dtype=None),
    "no shape": first(shape=None),
    "no offsets": first(data_offsets=None),
    "an unknown dtype": first(dtype="F33"),
    "a dtype that is a number": first(dtype=4),
    "a shape of 64 GiB": first(shape=[2**34]),
    "a shape smaller than its bytes": first(shape=[1]),
    "a wider dtype than its bytes": first(dtype="F64"),
    "a shape whose product overflows": first(shape=[2**40, 2**40]),
    "a shape of true": first(shape=[True, 2]),
    "a shape of floats": first(shape=[2.0]),
    "a negative shape": first(shape=[-2]),
    "a shape that is text": first(shape="2"),
    "three offsets": first(data_offsets=[0, 8, 8]),
    "offsets of true": first(data_offsets=[False, 8]),
    "offsets beyond 64 bits": first(data_offsets=[0, 2**64]),
    "offsets in reverse": first(data_offsets=[8, 0]),
    "nothing times 10**18": first(shape=[0, 10**18], data_offsets=[0, 0])[:-8],
    "a hundred axes": first(shape=[*[1] * 99, 2]),
    "a part twice": header(b'{"a": {"dtype": "F32", "dtype": "F32"}}'),
    "metadata that is a number": header({"__metadata__": {"x": 1}}),
    "metadata that is a list": header({"__metadata__": []}),
    "NaN in JSON": header(b'{"a": NaN}'),
    "a name that is no Unicode": header(b'{"\\ud800": 1}'),
    "a zero byte behind the header": header(b"{}\0"),
}  # fmt: skip


@pytest.mark.parametrize("read", [read_header, read_tensors, lambda path: TensorFile(path, {})])
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_header_that_contradicts_itself_is_refused_with_and_without_torch(tmp_path, name, read) -> None:
    (tmp_path / "model.safetensors").write_bytes(CONTRADICTIONS[name])
    with pytest.raises(RunError, match=r"/model\.safetensors is damaged: .*\. Copy it again, or use another"):
        read(tmp_path / "model.safetensors")


def test_a_pickle_in_a_run_is_not_loaded(run: Path, tmp_path: Path) -> None:
    bomb = pickle.dumps(PickleBomb(tmp_path / "exploded"))
    messages = {
        "model.safetensors": f"/{WRONG_HEADER}",
        "tokenizer.source.json": '.source.json: the stored tokenizer (kind = "characters") cannot be used: ',
        "config.json": "/config.json cannot be read: ",
        "environment.json": "/environment.json cannot be read: ",
    }
    for name, message in messages.items():
        copy = Path(shutil.copytree(run, tmp_path / f"copy-{name}"))
        (copy / name).write_bytes(bomb)
        with pytest.raises(RunError, match=re.escape(message)):
            load_run(copy)
    (run / "pytorch_model.bin").write_bytes(bomb)
    load_run(run)
    assert not (tmp_path / "exploded").exists()


def test_a_link_inside_the_folder_is_followed(run: Path) -> None:
    (run / "model.safetensors").rename(run / "weights-of-monday.safetensors")
    (run / "model.safetensors").symlink_to("weights-of-monday.safetensors")
    load_run(run)


def test_a_folder_that_is_itself_a_link_is_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(run)
    load_run(tmp_path / "linked")


def test_a_link_out_of_a_checkpoint_is_refused(run: Path, tmp_path: Path) -> None:
    from tests.checkpoint.test_directory import make_checkpoint

    directory = TrainingRun(run)
    directory.checkpoints.save(make_checkpoint(7), keep=1)
    weights = run / "checkpoints" / "step-7" / "model.safetensors"
    weights.rename(tmp_path / "outside")
    weights.symlink_to(tmp_path / "outside")
    with pytest.raises(
        RunError, match=r"/step-7/model\.safetensors is a link out of its folder, and is not followed"
    ):
        directory.checkpoints.read(7)


def test_refusing_hostile_runs_uses_little_memory(run: Path, tmp_path: Path) -> None:
    """Load all hostile runs in one process, whose memory must grow by less than 100 MiB."""
    folders = []
    for number, (name, (damage, _)) in enumerate(HOSTILE.items()):
        folders.append(tmp_path / f"{number}")
        shutil.copytree(run, folders[-1])
        damage(folders[-1])
        assert name
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom manyheads.checkpoint import RunDirectory\n"
        "from manyheads.tensors.models import load_model\n"
        "from manyheads.errors import RunError\n"
        "def size(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "def opened(path):\n"
        "    directory = RunDirectory.existing(Path(path))\n"
        "    config = directory.config()\n"
        "    load_model(directory, config, directory.tokenizers(config))\n"
        "opened(sys.argv[1])\n"
        "before = size()\n"
        "for path in sys.argv[2:]:\n"
        "    try: opened(path)\n"
        "    except RunError: continue\n"
        "    raise SystemExit(path)\n"
        "print(size() - before)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(run), *map(str, folders)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < MOST_MEMORY


def test_shapes_are_read_without_the_tensors(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7, dtype=torch.int64)}, tmp_path / "x", {"format": "pt"})
    header = read_header(tmp_path / "x")
    start = header["b"].start
    assert header == {"a": StoredTensor("F32", (3, 5), start + 56), "b": StoredTensor("I64", (7,), start)}
    assert read_tensors(tmp_path / "x")["b"].dtype == torch.int64
    save_file({}, tmp_path / "nothing")
    assert read_header(tmp_path / "nothing") == {}


def test_a_json_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"/x\.json cannot be read: "):
        read_json(tmp_path / "x.json")
