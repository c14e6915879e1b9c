"""A small GPT that learns to write Python's documentation, character by character.

The text is that of the topics of `help()`, which every Python carries; the last tenth of it is held out. The loss is
printed in nats per character.

    python examples/char_gpt.py
"""

import argparse
from pydoc_data import topics

import numpy as np
import optax

from ftrans import nn
from ftrans.nn import functional as F

CONTEXT = 128


class GPT(nn.Module):
    def __init__(self, vocabulary, width=128, layers=4, heads=4):
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def new_cache(self, batch_size, max_length):
        return self.blocks.new_cache(batch_size, max_length)

    def forward(self, text, caches=None):
        """Logits of the next character at each place of text[batch, length], which goes on where the caches end."""
        place = np.arange(text.shape[1])
        if caches is not None:
            place = place + caches[0].length
        x = self.tokens(text) + self.places(place)
        return self.head(self.blocks(x, is_causal=True, cache=caches))


def loss(logits, target):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))


def windows(text, step):
    """Pieces of a text that begin `step` characters apart, and the same pieces one character later."""
    pieces = np.lib.stride_tricks.sliding_window_view(text, CONTEXT + 1)[::step]
    return pieces[:, :-1], pieces[:, 1:]


def train(model, text, held_out, epochs, steps_per_epoch=150, batch_size=8, progress=True):
    steps = epochs * steps_per_epoch
    rate = optax.warmup_cosine_decay_schedule(0, 3e-3, warmup_steps=steps // 10, decay_steps=steps)
    return nn.fit(
        model,
        nn.batches(*windows(text, step=1), batch_size=batch_size),
        loss=loss,
        optimizer=optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.1)),
        epochs=epochs,
        steps_per_epoch=steps_per_epoch,
        validation=nn.batches(*windows(held_out, step=CONTEXT), batch_size=32, shuffle=False),
        progress=progress,
    )


def by_frequency(text, held_out):
    """The loss on a text when each character is expected as often as in another text, whatever stands before it."""
    counts = 1 + np.bincount(text, minlength=max(held_out) + 1)
    return -np.log(counts / counts.sum())[held_out].mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()

    text = "\n".join(topics.topics.values())
    characters = sorted(set(text))
    codes = {character: i for i, character in enumerate(characters)}
    data = np.array([codes[character] for character in text])
    cut = len(data) * 9 // 10

    nn.manual_seed(0)
    model = GPT(len(characters))
    history = train(model, data[:cut], data[cut:], args.epochs)

    prompt = np.array([[codes[character] for character in "The "]] * 4)
    for sample in nn.generate(model.eval(), prompt, CONTEXT - prompt.shape[1], temperature=0.8):
        print("-" * 80)
        print("".join(characters[i] for i in sample))
    print("-" * 80)
    print(f"held-out text: {history['val_loss'][-1]:.2f} nats per character", end=", ")
    print(f"{by_frequency(data[:cut], data[cut:]):.2f} when each character has the probability of its frequency")


if __name__ == "__main__":
    main()
