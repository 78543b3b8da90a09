"""The public corpora that can be fetched by name: addresses, sizes, checksums, terms of use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from manyheads.data.tatoeba import unpack_sentences

__all__ = ["CORPORA", "Corpus", "RemoteFile"]


@dataclass(frozen=True)
class RemoteFile:
    """One file of a corpus.

    Attributes:
        name: name of the local file.
        mirrors: addresses, tried in this order.
        sha256: expected SHA-256; None if the content changes with time, then the sum of the download is recorded.
        size: expected number of bytes, if known.
    """

    name: str
    mirrors: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class Corpus:
    """A corpus that can be fetched.

    Attributes:
        name: name of the corpus and of its folder.
        description: one line about the corpus.
        terms: terms of use, as far as its origin states them.
        files: files to fetch.
        unpack: makes the splits from the files in the folder and returns one line about them.
    """

    name: str
    description: str
    terms: str
    files: tuple[RemoteFile, ...]
    unpack: Callable[[Path], str] | None = None


def on_github(repository: str, commit: str, path: str) -> tuple[str, ...]:
    """Return the address of a file of a public repository at one commit."""
    return (
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{commit}/{path}",
    )


def multi30k() -> Corpus:
    """Describe Multi30k: image captions in four languages."""
    commit = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    files = {
        "test_2016_flickr.cs.gz": (22_572, "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1"),
        "test_2016_flickr.de.gz": (22_890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
        "test_2016_flickr.en.gz": (21_077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
        "test_2016_flickr.fr.gz": (22_310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
        "train.cs.gz": (593_827, "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077"),
        "train.de.gz": (637_044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
        "train.en.gz": (568_929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
        "train.fr.gz": (604_242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
        "val.cs.gz": (22_096, "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc"),
        "val.de.gz": (24_681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
        "val.en.gz": (21_650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
        "val.fr.gz": (23_001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
    }
    return Corpus(
        "multi30k",
        "image captions in de, en, fr, cs; splits train (29,000), val (1,014), test_2016_flickr (1,000)",
        "for research and education, non-commercial; images: Flickr Terms of Use (its README states no licence)",
        tuple(
            RemoteFile(name, on_github("multi30k/dataset", commit, f"data/task1/raw/{name}"), sha256, size)
            for name, (size, sha256) in files.items()
        ),
    )


def tatoeba(language: str, code: str, one_in: int) -> Corpus:
    """Describe the sentence pairs with English that manythings.org offers for flash cards."""
    archive = f"{code}-eng.zip"
    return Corpus(
        f"tatoeba-{language}-en",
        f"everyday sentences in {language} and en; splits train, valid, test, no sentence in two of them",
        "CC BY 2.0 FR; name tatoeba.org and www.manythings.org/anki",
        (RemoteFile(archive, (f"https://www.manythings.org/anki/{archive}",)),),
        partial(unpack_sentences, archive=archive, member=f"{code}.txt", language=language, one_in=one_in),
    )


def tinyshakespeare() -> Corpus:
    """Describe Tiny Shakespeare, a text for a language model of characters."""
    commit, path = "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e", "data/tinyshakespeare/input.txt"
    return Corpus(
        "tinyshakespeare",
        "1,115,394 characters of Shakespeare in one file; usual split: first 90 %, last 10 % of the characters",
        "plays in the public domain; its repository states nothing for the text",
        (
            RemoteFile(
                "input.txt",
                on_github("karpathy/char-rnn", commit, path),
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                1_115_394,
            ),
        ),
    )


CORPORA: Mapping[str, Corpus] = MappingProxyType(
    {
        corpus.name: corpus
        for corpus in (multi30k(), tatoeba("de", "deu", 70), tatoeba("ko", "kor", 10), tinyshakespeare())
    }
)
