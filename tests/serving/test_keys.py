"""Keys: shown once, stored as hashes, and all compared."""

from __future__ import annotations

import hmac
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from manyheads.cli.main import run
from manyheads.errors import DataError, UsageError
from manyheads.serving import keys as module
from manyheads.serving.keys import KeyFile, KeyRing


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


def test_a_key_is_found_and_no_other_text_is(file: KeyFile) -> None:
    secrets = [file.add(f"client {number}") for number in range(3)]
    assert len(set(secrets)) == 3
    ring = KeyRing(file)
    for number, secret in enumerate(secrets):
        found = ring.find(secret)
        assert found is not None
        assert found.name == f"client {number}"
    wrong = ["", "mh-", secrets[0][:-1], f"{secrets[0]}x", secrets[0].upper(), found.sha256, "\ud800"]
    assert [ring.find(text) for text in wrong] == [None] * len(wrong)


def test_the_file_does_not_hold_the_key_and_is_for_its_owner_only(file: KeyFile) -> None:
    secret = file.add("one")
    text = file.path.read_text()
    assert secret not in text
    assert secret[3:20] not in text
    assert file.path.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_change_by_root_keeps_the_owner_of_the_file(file: KeyFile) -> None:
    file.add("one")
    os.chown(file.path, 12_345, 12_345)
    file.add("two")
    file.remove("one")
    assert (file.path.stat().st_uid, file.path.stat().st_gid) == (12_345, 12_345)


def test_every_key_is_compared_in_constant_time(file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [file.add(str(number)) for number in range(4)]
    ring, seen = KeyRing(file), list[str]()

    real = hmac.compare_digest

    def compare(stored: str, sent: str) -> bool:
        seen.append(stored)
        return real(stored, sent)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    ring.find(secrets[0])
    assert len(seen) == 4


def test_a_running_server_notices_added_and_removed_keys(file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RELOAD_SECONDS", 0.0)
    old = file.add("old")
    ring = KeyRing(file)
    new = file.add("new")
    assert ring.find(new) is not None
    file.remove("old")
    assert ring.find(old) is None
    for corrupt in ("{", "[" * 100_000):  # the known keys stay valid
        file.path.write_text(corrupt)
        assert ring.find(new) is not None


def test_a_server_notices_a_removed_key_although_time_and_inode_are_as_before(
    file: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RELOAD_SECONDS", 0.0)
    secret = file.add("old")
    status = file.path.stat()
    ring = KeyRing(file)
    assert ring.find(secret) is not None
    file.path.write_text('{"format": 1, "keys": []}')
    os.utime(file.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ring.find(secret) is None


def test_changes_at_the_same_time_are_all_made(file: KeyFile, tmp_path: Path) -> None:
    for number in range(4):
        file.add(f"old {number}")

    def change(number: int) -> None:
        file.remove(f"old {number}")
        file.add(f"new {number}")

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(change, range(4)))
    assert sorted(key.name for key in file.read()) == [f"new {number}" for number in range(4)]
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links of POSIX")
def test_a_key_file_behind_a_link_is_changed_and_the_link_stays(file: KeyFile, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "keys.json").symlink_to("secrets/keys.json")
    file.add("one")
    file.add("two")
    assert file.path.is_symlink()
    assert [key.name for key in KeyFile(tmp_path / "secrets" / "keys.json").read()] == ["one", "two"]
    assert (tmp_path / "secrets" / "keys.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "[" * 100_000, '{"format": ' * 100_000, "\x00",
        '{"format": 1, "keys": [{"name": 1, "sha256": "00"}]}',
        '{"format": 2, "keys": []}', '{"format": 1, "keys": 1}',
    ],
)  # fmt: skip
def test_a_file_of_another_format_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(DataError, match=r"keys\.json"):
        KeyFile(tmp_path / "keys.json").read()


def test_the_names_of_keys_are_unique(file: KeyFile) -> None:
    file.add("one")
    with pytest.raises(UsageError, match="has a key named one"):
        file.add("one")
    with pytest.raises(UsageError, match=r"no key named two\. It has: one"):
        file.remove("two")


def test_the_verbs_add_list_and_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "keys.json")
    assert run(["serve", "keys", "add", path, "weblate", "--req-limit", "600"]) == 0
    secret = capsys.readouterr().out.strip()
    assert KeyRing(KeyFile(Path(path))).find(secret) is not None
    assert run(["serve", "keys", "list", path]) == 0
    assert capsys.readouterr().out == "weblate  600 requests a minute\n"
    assert run(["serve", "keys", "list", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "weblate", "req_limit": 600}]
    assert run(["serve", "keys", "remove", path, "weblate"]) == 0
    assert run(["serve", "keys", "remove", path, "weblate"]) == 2
    assert run(["serve", "keys", "list", str(tmp_path / "none")]) == 3
