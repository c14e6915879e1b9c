"""The gallery of NumPy functions: gradients, un-jitted and compiled, beside those of libraries that take the same code.

Each contender runs the function of `examples/numpy_gallery` with its own NumPy in place of `numpy`. Where another
library does not take it, since it fills arrays in place, for instance, the others run the same mathematics as somebody
would write it for them.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .gallery_rewrites import REWRITES
from .harness import Contender, Row, Table, time_side_by_side
from .libraries import Library, autograd, available, ftrans, ftrans_jit, jax_jit

GALLERY = Path(__file__).parent.parent / "examples" / "numpy_gallery"
LIBRARIES: Mapping[str, Callable[[], Library]] = {
    "ftrans": ftrans, "autograd": autograd, "ftrans jit": ftrans_jit, "jax jit": jax_jit,
}  # fmt: skip


def run() -> Table:
    names = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "__main__")
    return Table(
        "gallery: gradients of NumPy code as scientists write it, NumPy in and out; the second ratio is compiled",
        [row(name) for name in names],
    )


def row(name: str) -> Row:
    print(f"  {name}", file=sys.stderr)
    made = {label: contender(name, label, library) for label, library in available(LIBRARIES).items()}
    plain, jitted = (
        time_side_by_side({k: c for k, c in made.items() if k in pair}, reference=pair[1], seconds=1.0)
        for pair in (("ftrans", "autograd"), ("ftrans jit", "jax jit"))
    )
    columns = {k: (jitted if k.endswith("jit") else plain).typical(k) for k in made}
    return Row(name, columns, [plain.ratio("ftrans", "autograd"), jitted.ratio("ftrans jit", "jax jit")])


def contender(name: str, label: str, library: Library) -> Contender:
    """The gradient of the function of a file, with a library's own NumPy."""
    function, arguments = namespace(name)["example"]()
    if not label.startswith("ftrans"):
        function = of_library(name, library)
    return library.contender(lambda np, *args: function(*args), arguments)


def of_library(name: str, library: Library) -> Callable[..., Any]:
    """The function of a file, or what somebody would write in its place, with the NumPy of a library."""
    if name in REWRITES:
        return functools.partial(REWRITES[name], library.np)
    return namespace(name, library.np.__name__)["example"]()[0]


@functools.cache
def namespace(name: str, numpy: str = "") -> dict[str, Any]:
    """What a file defines, with `numpy` and `scipy.special` of another library if one is named."""
    source = (GALLERY / f"{name}.py").read_text()
    if numpy:
        source = source.replace("import numpy as np", f"import {numpy} as np")
        source = source.replace("import ftrans.numpy as np", f"import {numpy} as np")
        source = re.sub(r"from (ftrans\.)?scipy\.", f"from {numpy.partition('.')[0]}.scipy.", source)
        # Data come from NumPy's own generators.
        source = source.replace("np.random.default_rng", "__import__('numpy').random.default_rng")
    found: dict[str, Any] = {}
    exec(compile(source, f"{name}.py", "exec"), found)
    return found
