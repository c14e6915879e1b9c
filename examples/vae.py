"""A variational autoencoder of handwritten digits (Kingma and Welling, 2014).

It is trained on 4,000 black-and-white images; 1,000 others are held out. What it has learned is measured in nats: a
lower bound on the log-likelihood of the held-out images (the ELBO), beside their log-likelihood when each pixel is
white or black independently of the others. Pictures go to vae.png, where matplotlib is installed.

    python examples/vae.py
"""

import argparse
from importlib.util import find_spec

import numpy as np
import optax
from datasets import mnist

from ftrans import nn
from ftrans.nn import distributions as D
from ftrans.nn import functional as F

PIXELS = 28 * 28
LATENT = 20


class VAE(nn.Module):
    def __init__(self, hidden=400):
        self.encoder = nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU(), nn.Linear(hidden, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, PIXELS))
        self.rng = nn.RngState()

    def forward(self, x):
        """A lower bound on the log-likelihood of each image in x, from one sample of its latent variables."""
        mean, log_variance = np.split(self.encoder(x), 2, axis=-1)
        posterior, prior = D.Normal(mean, np.exp(log_variance / 2)), D.Normal(0.0, 1.0)
        z = posterior.rsample(rng=self.rng)
        likelihood = D.Bernoulli(logits=self.decoder(z)).log_prob(x).sum(axis=-1)
        return likelihood - D.kl_divergence(posterior, prior).sum(axis=-1)


def train(model, images, held_out, epochs, progress=True):
    return nn.fit(
        model,
        nn.batches(images, batch_size=100),
        objective=lambda model, x: -model(x).mean(),
        optimizer=optax.adam(1e-3),
        epochs=epochs,
        validation=nn.batches(held_out, batch_size=500, shuffle=False),
        progress=progress,
    )


def independent_pixels(images, held_out):
    """The mean log-likelihood of images held out, when each pixel is white as often as in the other images."""
    white = (images.sum(axis=0) + 1) / (len(images) + 2)
    return np.log(np.where(held_out == 1, white, 1 - white)).sum(axis=-1).mean()


def draw(images, path):
    from matplotlib.image import imsave

    rows = images.reshape(-1, 10, 28, 28)
    imsave(path, np.block([list(row) for row in rows]), cmap="gray")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--picture", default="vae.png")
    args = parser.parse_args()

    (images, _), (held_out, _) = mnist()
    images, held_out = (np.float32(x.reshape(-1, PIXELS) > 0.5) for x in (images, held_out))
    nn.manual_seed(0)
    model = VAE()
    history = train(model, images, held_out, args.epochs)

    print(f"independent pixels: log-likelihood {independent_pixels(images, held_out):.1f} nats an image")
    print(f"VAE:                log-likelihood at least {-history['val_loss'][-1]:.1f} nats an image")
    if find_spec("matplotlib"):
        z = np.random.default_rng(0).standard_normal((50, LATENT), np.float32)
        draw(F.sigmoid(model.decoder(z)), args.picture)


if __name__ == "__main__":
    main()
