"""NumPy's face: the functions of `numpy`, on arrays and on traced values alike."""

from . import methods, ufuncs

globals().update(ufuncs.FUNCTIONS)
methods.install()
