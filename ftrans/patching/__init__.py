"""Code of other people, patched: functions of NumPy, SciPy and Python in it that take traced values."""
