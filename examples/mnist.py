"""A convolutional network that reads handwritten digits.

It is trained on 4,000 images of MNIST and tested on 1,000 others, a hundred of each digit.

    python examples/mnist.py
"""

import argparse

import numpy as np
import optax
from datasets import mnist

from ftrans import nn
from ftrans.nn import functional as F


class CNN(nn.Module):
    def __init__(self):
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 7 * 7, 10))

    def forward(self, images):
        return self.classifier(self.features(images[:, None]))


def accuracy(logits, digits):
    return np.mean(logits.argmax(axis=-1) == digits)


def moved(batches, seed):
    """The batches, each moved by up to two pixels: the digits stay the same, and there is more to learn from."""
    rng = np.random.default_rng(seed)

    def epoch():
        for images, digits in batches:
            yield np.roll(images, rng.integers(-2, 3, size=2), axis=(1, 2)), digits

    return epoch


def train(model, training, test, epochs, progress=True):
    steps = epochs * (len(training[0]) // 50)
    return nn.fit(
        model,
        moved(nn.batches(*training, batch_size=50, drop_last=True), seed=0),
        loss=F.cross_entropy,
        optimizer=optax.adam(optax.cosine_decay_schedule(2e-3, decay_steps=steps)),
        epochs=epochs,
        validation=nn.batches(*test, batch_size=500, shuffle=False),
        metrics=[accuracy],
        progress=progress,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()

    training, test = mnist()
    nn.manual_seed(0)
    model = CNN()
    history = train(model, training, test, args.epochs)
    print(f"right on {100 * history['val_accuracy'][-1]:.1f} % of {len(test[0])} images that were held out")


if __name__ == "__main__":
    main()
