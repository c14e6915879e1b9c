"""A recurrent network (GRU) that tells nine men apart by how they say two Japanese vowels.

Each utterance is a sequence of 7 to 29 frames of 12 coefficients; there are 270 to train on, and 370 held out. The
baseline takes the speaker of the most similar utterance, by the means of the frames.

    python examples/gru_classifier.py
"""

import argparse

import numpy as np
import optax
from datasets import japanese_vowels

from ftrans import nn
from ftrans.nn import functional as F

SPEAKERS, COEFFICIENTS = 9, 12


class Classifier(nn.Module):
    def __init__(self, hidden=64):
        self.gru = nn.GRU(COEFFICIENTS, hidden, batch_first=True)
        self.drop_input, self.drop_state = nn.Dropout(0.2), nn.Dropout(0.5)
        self.linear = nn.Linear(hidden, SPEAKERS)

    def forward(self, frames, lengths):
        states, _ = self.gru(self.drop_input(frames))
        last = states[np.arange(len(states)), lengths - 1]
        return self.linear(self.drop_state(last))


def accuracy(logits, speakers):
    return np.mean(logits.argmax(axis=-1) == speakers)


def standardized(frames, lengths, like):
    """Frames with each coefficient of mean 0 and deviation 1 in the frames of `like`, and zeros after the end."""
    known = like[0][is_frame(*like)]
    mean, deviation = known.mean(axis=0), known.std(axis=0)
    return (frames - mean) / deviation * is_frame(frames, lengths)[..., None]


def is_frame(frames, lengths):
    """Booleans [batch, time], True before the end of each sequence."""
    return np.arange(frames.shape[1]) < lengths[:, None]


def train(model, training, epochs, progress=True):
    batch_size = 30
    rate = optax.cosine_decay_schedule(3e-3, decay_steps=epochs * len(training[0]) // batch_size)
    return nn.fit(
        model,
        nn.batches(*training, batch_size=batch_size),
        loss=F.cross_entropy,
        optimizer=optax.adamw(rate, weight_decay=1e-2),
        epochs=epochs,
        metrics=[accuracy],
        progress=progress,
    )


def nearest(training, test):
    """The accuracy when each utterance is given the speaker of the one with the nearest mean of frames."""
    means, test_means = (frames.sum(axis=1) / lengths[:, None] for frames, lengths, _ in (training, test))
    distances = np.linalg.norm(test_means[:, None] - means, axis=-1)
    return np.mean(training[2][distances.argmin(axis=1)] == test[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()

    known, asked = japanese_vowels("TRAIN"), japanese_vowels("TEST")
    training, test = ((standardized(frames, n, like=known[:2]), n, who) for frames, n, who in (known, asked))
    nn.manual_seed(0)
    model = Classifier()
    train(model, training, args.epochs)
    frames, lengths, speakers = test
    logits = model.eval()(frames, lengths)

    print(f"of {len(speakers)} utterances that were held out,")
    print(f"the most similar utterance gives {100 * nearest(training, test):.1f} % to the right speaker,")
    print(f"the network                      {100 * accuracy(logits, speakers):.1f} %")


if __name__ == "__main__":
    main()
