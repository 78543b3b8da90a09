"""The reference training of the speedrun: the same work on every machine, with nothing but torch.

    python benchmarks/speedrun/reference.py [UPDATES]

An `nn.Transformer` of width 256 with 3+3 layers learns to copy made-up tokens in float32, on one thread: where
other programs use the cores, threads that wait for each other would count as busy.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

UPDATES = 30
WIDTH, VOCABULARY, SENTENCES, LENGTH = 256, 6_000, 64, 24


def main(updates: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    transformer = nn.Transformer(WIDTH, 4, 3, 3, 4 * WIDTH, batch_first=True)
    embedding = nn.Embedding(VOCABULARY, WIDTH)
    output = nn.Linear(WIDTH, VOCABULARY)
    parameters = [*transformer.parameters(), *embedding.parameters(), *output.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH - 1)
    for _ in range(updates):
        tokens = torch.randint(VOCABULARY, (SENTENCES, LENGTH))
        states = transformer(embedding(tokens), embedding(tokens[:, :-1]), tgt_mask=mask, tgt_is_causal=True)
        loss = functional.cross_entropy(output(states).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else UPDATES)
