"""Functions of published packages that were not written for differentiation, and programs like them, with what becomes
of each: `make test-thirdparty` installs the packages and runs the collection, `make test` a light part of it.
"""

from . import rows_earth_and_sky, rows_engineering, rows_physics, rows_scripts, rows_statistics

ROWS = [
    *rows_scripts.ROWS,
    *rows_engineering.ROWS,
    *rows_earth_and_sky.ROWS,
    *rows_physics.ROWS,
    *rows_statistics.ROWS,
]
