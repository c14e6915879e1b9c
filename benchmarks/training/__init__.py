"""Training: steps of the usual models, with the optimizer, against what one would use instead.

One module for each library builds the same four models as its users would; `measure` times them side by side.
"""

from .measure import run

__all__ = ["run"]
