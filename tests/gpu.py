"""The sample table on a GPU: `python tests/gpu.py` compares every row through XLA with the NumPy evaluator.

It needs no test framework, and says so where there is no GPU.
"""

from __future__ import annotations

import sys
from collections import Counter

import control_samples  # noqa: F401
import jax
import linalg_samples  # noqa: F401
import numpy as np
import samples  # noqa: F401
import special_samples_bessel  # noqa: F401
import special_samples_errors  # noqa: F401
import special_samples_gamma  # noqa: F401
from checks import TOLERANCES, assert_all_close
from sampling import SAMPLES, Sample

from ftrans.run.evaluate import evaluate
from ftrans.xla.execute import run_program

# Transcendental functions of a GPU are a few units in the last place off, and sums go in another order.
LOOSER = 10


def compare(sample: Sample, device: jax.Device) -> None:
    """Assert that a row gives on the device what it gives on NumPy."""
    program, operands = sample.program(), sample.draw()
    with np.errstate(all="ignore"):
        expected = sample.canonical(evaluate(program, operands))
    with jax.enable_x64(True), jax.default_device(device):
        found = [np.asarray(x)[()] for x in run_program(program, [jax.device_put(x, device) for x in operands])]
    assert_all_close(sample.canonical(found), expected, looseness=LOOSER * sample.looseness)


def main() -> int:
    """Run the table; return the exit status."""
    gpus = [device for device in jax.devices() if device.platform in ("gpu", "cuda", "rocm")]
    if not gpus:
        print("There is no GPU that JAX can use here: nothing was compared.")
        return 0
    print(f"{len(SAMPLES)} samples on {gpus[0].device_kind}; tolerances {TOLERANCES}, times {LOOSER}")
    failures: Counter[str] = Counter()
    for sample in SAMPLES:
        try:
            compare(sample, gpus[0])
        except Exception as error:
            failures[sample.primitive.name] += 1
            print(f"FAILED {sample}\n  {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    print(f"{len(SAMPLES) - failures.total()} agree, {failures.total()} do not: {dict(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
