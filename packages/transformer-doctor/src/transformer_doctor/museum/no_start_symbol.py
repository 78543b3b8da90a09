"""A translator that is never taught its first word.

The rows of ids have no start symbol, and are shifted by one all the same.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine
from transformer_doctor.museum.base import BOS, EOS, PAD, Rows, Translator, pad_rows, token_loss, update

V = 13

model = Translator(V)
optimizer = torch.optim.Adam(model.parameters(), 5e-3)


def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
    """Return rows of ids, with marks, as padded tensors."""
    targets = [[*row, EOS] for row in targets]
    # fix: targets = [[BOS, *row, EOS] for row in targets]
    return pad_rows([[*row, EOS] for row in sources]), pad_rows(targets)


def train_step(source: Tensor, target: Tensor) -> float:
    """Make one update: predict each token from the tokens before it."""
    return update(optimizer, token_loss(model(source, target[:, :-1]), target[:, 1:]))


@torch.no_grad()
def greedy(source: Tensor) -> Tensor:
    """Decode: append the most likely next token eight times."""
    target = torch.full((len(source), 1), BOS)
    for _ in range(8):
        target = torch.cat([target, model(source, target)[:, -1:].argmax(-1)], 1)
    return target


def show() -> Iterator[str]:
    """Train the model to repeat the source, then decode."""
    sources = [[3, 4, 5], [6, 7, 8, 9], [10, 11, 12], [5, 9, 3, 7]]
    for step in range(1, 81):
        loss = train_step(*collate(sources, sources))
        if step in (1, 20, 40, 80):
            yield f"step {step:3}   loss {loss:.3f}"
    model.eval()
    for row, output in zip(sources, greedy(collate(sources, sources)[0]).tolist(), strict=True):
        ended = output[1:].index(EOS) + 1 if EOS in output[1:] else len(output)
        yield f"wanted {row}   got {output[1:ended]}"


report = partial(examine, model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS, train_step=train_step, collate=collate)
