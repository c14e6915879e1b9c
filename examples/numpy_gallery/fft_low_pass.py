"""A low-pass filter in the frequency domain: the misfit of the filtered signal, as a function of the signal."""

import numpy as np


def misfit(signal, target, cutoff=0.1):
    """Squared difference between `target` and `signal` behind a filter of Gaussian shape, with its total variation."""
    frequencies = np.fft.rfftfreq(len(signal))
    response = np.exp(-0.5 * (frequencies / cutoff) ** 2)
    smooth = np.fft.irfft(response * np.fft.rfft(signal), len(signal))
    return np.sum((smooth - target) ** 2) + 0.01 * np.sum(np.sqrt(1e-4 + np.diff(smooth) ** 2))


def example():
    """A noisy square wave of 512 samples."""
    random = np.random.default_rng(9)
    target = np.sign(np.sin(np.arange(512) * 0.05))
    return misfit, (target + 0.3 * random.normal(size=512), target)
