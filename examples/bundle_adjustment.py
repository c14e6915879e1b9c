"""Find cameras and points in space from what the cameras see: bundle adjustment, by SciPy's least_squares.

Cameras are those of "Bundle Adjustment in the Large" (Agarwal, Snavely, Seitz and Szeliski, ECCV 2010): a rotation
vector, a translation, a focal length and two coefficients of distortion. A scene is made up, looked at with some noise
and lost: the search starts from cameras and points that are off. What is seen depends on one camera and one point, so
of the Jacobian, which has a row for each coordinate that was seen, twelve elements in each row may differ from zero.
`ftrans.scipy.optimize.least_squares` finds which, and computes just them, exactly.

    python examples/bundle_adjustment.py
    python examples/bundle_adjustment.py --observations 40000
"""

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np

from ftrans.scipy import optimize

NOISE = 0.5  # pixels


@dataclass(frozen=True)
class Scene:
    """What was seen: by which camera, of which point, and where in its picture."""

    cameras: int
    camera: np.ndarray
    point: np.ndarray
    seen: np.ndarray

    def residuals(self, z):
        """Where the pictures of the points are, as seen from what they should be, in pixels."""
        return (self.pictures(z) - self.seen).reshape(-1)

    def pictures(self, z):
        """Where each point is in the picture of its camera; `z` holds the cameras, then the points."""
        cameras, points = z[: 9 * self.cameras].reshape(-1, 9), z[9 * self.cameras :].reshape(-1, 3)
        w1, w2, w3, t1, t2, t3, focal, k1, k2 = cameras[self.camera].T
        p1, p2, p3 = points[self.point].T
        # Rodrigues' formula turns the point by an angle about an axis.
        angle = np.sqrt(w1**2 + w2**2 + w3**2)
        a1, a2, a3 = w1 / angle, w2 / angle, w3 / angle
        c, s = np.cos(angle), np.sin(angle)
        along = (a1 * p1 + a2 * p2 + a3 * p3) * (1 - c)
        q1 = p1 * c + (a2 * p3 - a3 * p2) * s + a1 * along + t1
        q2 = p2 * c + (a3 * p1 - a1 * p3) * s + a2 * along + t2
        q3 = p3 * c + (a1 * p2 - a2 * p1) * s + a3 * along + t3
        # The camera looks along the negative third axis.
        x, y = -q1 / q3, -q2 / q3
        square = x**2 + y**2
        scale = focal * (1 + k1 * square + k2 * square**2)
        return np.stack([scale * x, scale * y], axis=1)


def made_up(observations, seed=0):
    """A scene, and cameras and points that are off by a few percent."""
    random = np.random.default_rng(seed)
    cameras, points = max(observations // 400, 4), max(observations // 8, 10)
    turns = 0.2 * random.standard_normal((cameras, 3))
    shifts = np.array([0, 0, -5]) + 0.3 * random.standard_normal((cameras, 3))
    lenses = np.array([500, 0, 0]) + np.array([10, 0.01, 0.01]) * random.standard_normal((cameras, 3))
    truth = np.concatenate([np.hstack([turns, shifts, lenses]).ravel(), random.standard_normal(3 * points)])
    who, what = random.integers(0, cameras, observations), random.integers(0, points, observations)
    clear = Scene(cameras, who, what, np.zeros((observations, 2))).pictures(truth)
    scene = Scene(cameras, who, what, clear + NOISE * random.standard_normal(clear.shape))
    return scene, truth + 0.01 * random.standard_normal(truth.size) * np.maximum(np.abs(truth), 0.1)


def solve(scene, start):
    return optimize.least_squares(
        scene.residuals, start, x_scale="jac", method="trf", tr_solver="lsmr", ftol=1e-6, max_nfev=100
    )


def typical(residuals):
    """The root of the mean square."""
    return np.sqrt(np.mean(residuals**2))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--observations", type=int, default=20_000)
    scene, start = made_up(options.parse_args().observations)

    points = (start.size - 9 * scene.cameras) // 3
    print(f"{scene.cameras} cameras, {points} points, {len(scene.seen)} observations: {start.size} unknowns")
    began = time.perf_counter()
    found = solve(scene, start)
    seconds = time.perf_counter() - began
    before, after = typical(scene.residuals(start)), typical(found.fun)
    print(f"from {before:.2f} to {after:.4f} pixels, in {found.nfev} steps and {seconds:.2f} s")
    print(found.ftrans["jac"])
    # The fit takes the part of the noise that the unknowns can follow.
    expected = NOISE * np.sqrt(1 - start.size / found.fun.size)
    print(f"The noise leaves {expected:.4f} pixels to the best fit.")
    return 0 if after < 1.02 * expected else 1


if __name__ == "__main__":
    sys.exit(main())
