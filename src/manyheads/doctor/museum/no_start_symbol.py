"""A translator that is never taught its first word.

The rows of ids have no start symbol, and are shifted by one all the same.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.doctor import Report, examine

PAD, BOS, EOS, V, D = 0, 1, 2, 13, 32


class Translator(nn.Module):
    """nn.Transformer between embeddings and an output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(30, D)
        self.transformer = nn.Transformer(D, 2, 1, 1, 64, dropout=0.0, batch_first=True)
        self.output = nn.Linear(D, V)
        self.max_length = 30

    def embed(self, ids: Tensor) -> Tensor:
        """(B, S) -> (B, S, D)."""
        return self.tokens(ids) + self.places(torch.arange(ids.size(1)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, V)."""
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(hidden)


torch.manual_seed(0)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), 5e-3)


def collate(sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Rows of ids as padded tensors."""
    targets = [[*row, EOS] for row in targets]
    # mend: targets = [[BOS, *row, EOS] for row in targets]
    return padded([[*row, EOS] for row in sources]), padded(targets)


def padded(rows: list[list[int]]) -> Tensor:
    """Rows of one length."""
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def train_step(source: Tensor, target: Tensor) -> float:
    """One update: predict each token from those before it."""
    logits = model(source, target[:, :-1])
    loss = functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def greedy(source: Tensor) -> Tensor:
    """The most likely next token, eight times."""
    target = torch.full((len(source), 1), BOS)
    for _ in range(8):
        target = torch.cat([target, model(source, target)[:, -1:].argmax(-1)], 1)
    return target


def show() -> Iterator[str]:
    """The task: repeat the source."""
    sources = [[3, 4, 5], [6, 7, 8, 9], [10, 11, 12], [5, 9, 3, 7]]
    for step in range(1, 121):
        loss = train_step(*collate(sources, sources))
        if step in (1, 40, 80, 120):
            yield f"step {step:3}   loss {loss:.3f}"
    model.eval()
    for row, output in zip(sources, greedy(collate(sources, sources)[0]).tolist(), strict=True):
        ended = output[1:].index(EOS) + 1 if EOS in output[1:] else len(output)
        yield f"wanted {row}   got {output[1:ended]}"


def examined() -> Report:
    """Ask the doctor."""
    return examine(
        model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS, train_step=train_step, collate=collate, greedy=greedy
    )
