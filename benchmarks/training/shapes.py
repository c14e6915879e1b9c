"""What the models of all libraries have in common: their sizes and their batches."""

from __future__ import annotations

import numpy as np

LEARNING_RATE = 1e-3
CLASSES = 10
PIXELS, HIDDEN, MLP_BATCH = 784, 256, 128
CHANNELS, IMAGE, CNN_BATCH = (32, 64), 28, 64
VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH, GPT_BATCH = 96, 128, 4, 4, 64, 8
NOISE, GENERATOR, GAN_IMAGE, GAN_BATCH = 64, 32, 32, 32
UNET, UNET_IMAGE, UNET_BATCH = (16, 32, 64), 64, 4
STEPS, FEATURES, STATES, LSTM_BATCH = 100, 28, 128, 64


def gan_batch() -> tuple[np.ndarray, np.ndarray]:
    """Images and noise for a step of the DCGAN."""
    rng = np.random.default_rng(0)
    images = rng.uniform(-1, 1, (GAN_BATCH, 3, GAN_IMAGE, GAN_IMAGE)).astype(np.float32)
    return images, rng.normal(size=(GAN_BATCH, NOISE, 1, 1)).astype(np.float32)


def unet_batch() -> tuple[np.ndarray, np.ndarray]:
    """Images and masks for a step of the U-Net."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(UNET_BATCH, 3, UNET_IMAGE, UNET_IMAGE)).astype(np.float32)
    return images, (rng.random((UNET_BATCH, 1, UNET_IMAGE, UNET_IMAGE)) < 0.5).astype(np.float32)


def batch(model: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets for a step of a model."""
    rng = np.random.default_rng(0)
    if model == "gpt":
        text = rng.integers(0, VOCABULARY, (GPT_BATCH, LENGTH + 1))
        return text[:, :-1].astype(np.int32), text[:, 1:].astype(np.int32)
    shape = {
        "mlp": (MLP_BATCH, PIXELS),
        "cnn": (CNN_BATCH, 1, IMAGE, IMAGE),
        "lstm": (LSTM_BATCH, STEPS, FEATURES),
    }[model]
    inputs = rng.normal(size=shape).astype(np.float32)
    return inputs, rng.integers(0, CLASSES, shape[0]).astype(np.int32)
