"""ftrans: write NumPy, get exact derivatives of any order, dense or sparse, compiled by XLA."""

import gc as _gc
import importlib as _importlib
import typing as _typing

# What is imported stays, so collections meanwhile find nothing, and would take a sixth of the time.
_was_enabled = _gc.isenabled()
_gc.disable()
try:
    from . import numpy
    from .api.derivatives import grad, jvp, stop_gradient, value_and_grad, vjp
    from .base.displayed import Displayed as _Displayed
    from .base.foreign_arrays import ForeignArrays as _ForeignArrays
    from .base.storable import Storable as _Storable
    from .base.version import __version__ as __version__
    from .numpy.dispatch import ENTERED_LATER as _ENTERED_LATER
finally:
    if _was_enabled:
        # Nor does the next collection walk through it: freezing makes it old at once.  Whoever has frozen objects of
        # their own keeps them so.
        if not _gc.get_freeze_count():
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()

if _typing.TYPE_CHECKING:
    from . import autograd, debug, nn, scipy, testing
    from .api.allocator import keep_memory
    from .api.associative_scan import associative_scan
    from .api.branches import cond, switch
    from .api.cache_dir import set_cache_dir
    from .api.checkpoint import checkpoint, residuals
    from .api.coloring import Coloring, coloring
    from .api.custom_rules import custom_jvp, custom_vjp
    from .api.explain_zero import explain_zero
    from .api.gradient_edits import clip_gradient, grad_hook, reverse_gradient, scale_gradient, straight_through
    from .api.jacobians import hessian, hvp, jacfwd, jacobian, jacrev, value_and_jacobian, vhp
    from .api.jit import jit, trace
    from .api.lagrangian import gauss_newton, lagrangian_hessian
    from .api.laplacians import curl, divergence, hessian_diagonal, laplacian
    from .api.linear_functions import linear_transpose, linearize
    from .api.loops import fori_loop, map, scan, while_loop
    from .api.nlp import nlp
    from .api.precision import matmul_precision
    from .api.processes import initialize_processes
    from .api.sharding import P, mesh, shard, use_mesh
    from .api.show_progress import show_progress
    from .api.sparse import sparse_hessian, sparse_jacobian, value_and_sparse_hessian, value_and_sparse_jacobian
    from .api.sparse_patterns import hessian_sparsity, jacobian_sparsity
    from .api.sparsity import Sparsity
    from .api.taps import tap
    from .api.taylor import bilaplacian, directional_derivative, jet, taylor
    from .api.vmap import vmap
    from .control.convergence import ConvergenceError
    from .core.program import Program
    from .debug.explain import explain
    from .interop.from_jax import from_jax
    from .interop.from_torch import from_torch
    from .interop.to_torch import to_torch
    from .numpy.object_arrays import ObjectArrayWarning
    from .patching.patch import patch, patched
    from .solvers.argmin import argmin
    from .solvers.implicit import fixed_point, root
    from .solvers.linear import linear_solve
    from .solvers.odeint import odeint
    from .storage.exported import export, load_exported
    from .storage.onnx import to_onnx

__all__ = [
    "Coloring",
    "ConvergenceError",
    "ObjectArrayWarning",
    "P",
    "Program",
    "Sparsity",
    "argmin",
    "associative_scan",
    "autograd",
    "bilaplacian",
    "checkpoint",
    "clip_gradient",
    "coloring",
    "cond",
    "curl",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "directional_derivative",
    "divergence",
    "explain",
    "explain_zero",
    "export",
    "fixed_point",
    "fori_loop",
    "from_jax",
    "from_torch",
    "gauss_newton",
    "grad",
    "grad_hook",
    "hessian",
    "hessian_diagonal",
    "hessian_sparsity",
    "hvp",
    "initialize_processes",
    "jacfwd",
    "jacobian",
    "jacobian_sparsity",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "keep_memory",
    "lagrangian_hessian",
    "laplacian",
    "linear_solve",
    "linear_transpose",
    "linearize",
    "load_exported",
    "map",
    "matmul_precision",
    "mesh",
    "nlp",
    "nn",
    "numpy",
    "odeint",
    "patch",
    "patched",
    "residuals",
    "reverse_gradient",
    "root",
    "scale_gradient",
    "scan",
    "scipy",
    "set_cache_dir",
    "shard",
    "show_progress",
    "sparse_hessian",
    "sparse_jacobian",
    "stop_gradient",
    "straight_through",
    "switch",
    "tap",
    "taylor",
    "testing",
    "to_onnx",
    "to_torch",
    "trace",
    "use_mesh",
    "value_and_grad",
    "value_and_jacobian",
    "value_and_sparse_hessian",
    "value_and_sparse_jacobian",
    "vhp",
    "vjp",
    "vmap",
    "while_loop",
]

# What a gradient of a function of NumPy can do without is imported when somebody asks for it.
_PACKAGES = ("autograd", "debug", "nn", "scipy", "testing")
_FILES = {
    "api.allocator": ("keep_memory",),
    "api.associative_scan": ("associative_scan",),
    "api.branches": ("cond", "switch"),
    "api.cache_dir": ("set_cache_dir",),
    "api.checkpoint": ("checkpoint", "residuals"),
    "api.coloring": ("Coloring", "coloring"),
    "api.custom_rules": ("custom_jvp", "custom_vjp"),
    "api.explain_zero": ("explain_zero",),
    "api.gradient_edits": ("clip_gradient", "grad_hook", "reverse_gradient", "scale_gradient", "straight_through"),
    "api.jacobians": ("hessian", "hvp", "jacfwd", "jacobian", "jacrev", "value_and_jacobian", "vhp"),
    "api.jit": ("jit", "trace"),
    "api.laplacians": ("curl", "divergence", "hessian_diagonal", "laplacian"),
    "api.lagrangian": ("gauss_newton", "lagrangian_hessian"),
    "api.linear_functions": ("linear_transpose", "linearize"),
    "api.loops": ("fori_loop", "map", "scan", "while_loop"),
    "api.nlp": ("nlp",),
    "api.precision": ("matmul_precision",),
    "api.processes": ("initialize_processes",),
    "api.show_progress": ("show_progress",),
    "api.sharding": ("P", "mesh", "shard", "use_mesh"),
    "api.sparse_patterns": ("hessian_sparsity", "jacobian_sparsity"),
    "api.sparse": ("sparse_hessian", "sparse_jacobian", "value_and_sparse_hessian", "value_and_sparse_jacobian"),
    "api.sparsity": ("Sparsity",),
    "api.taps": ("tap",),
    "api.taylor": ("bilaplacian", "directional_derivative", "jet", "taylor"),
    "api.vmap": ("vmap",),
    "interop.from_torch": ("from_torch",),
    "interop.to_torch": ("to_torch",),
    "debug.explain": ("explain",),
    "control.convergence": ("ConvergenceError",),
    "core.program": ("Program",),
    "interop.from_jax": ("from_jax",),
    "numpy.object_arrays": ("ObjectArrayWarning",),
    "patching.patch": ("patch", "patched"),
    "solvers.argmin": ("argmin",),
    "solvers.implicit": ("fixed_point", "root"),
    "solvers.linear": ("linear_solve",),
    "solvers.odeint": ("odeint",),
    "storage.exported": ("export", "load_exported"),
    "storage.onnx": ("to_onnx",),
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names}

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any:
        if name in _PACKAGES:
            return _importlib.import_module(f".{name}", __name__)
        if name in _FILE_OF:
            found = globals()[name] = getattr(_importlib.import_module(f".{_FILE_OF[name]}", __name__), name)
            return found
        raise _importlib.import_module(".api.missing", __name__).missing(name)


def __dir__() -> list[str]:
    return sorted(__all__)


# Arrays of other libraries are taken by what need not be imported for others.
_ForeignArrays.take = lambda *call: _importlib.import_module(".interop.taking", __name__).take(*call)

# SciPy takes a second to import; programs that call none of its functions do without.
_ENTERED_LATER["scipy.sparse"] = lambda: _importlib.import_module(".scipy.sparse", __name__)
_ENTERED_LATER["scipy.spatial"] = lambda: _importlib.import_module(".scipy.spatial", __name__)
_ENTERED_LATER["scipy.spatial.transform"] = lambda: _importlib.import_module(".scipy.spatial.transform", __name__)
_ENTERED_LATER["scipy.spatial.distance"] = lambda: _importlib.import_module(".scipy.spatial.distance", __name__)
_ENTERED_LATER["scipy.special"] = lambda: _importlib.import_module(".scipy.special", __name__)
_ENTERED_LATER["scipy.fft"] = lambda: _importlib.import_module(".scipy.fft", __name__)
_ENTERED_LATER["scipy.integrate"] = lambda: _importlib.import_module(".scipy.integrate", __name__)
_ENTERED_LATER["scipy.optimize"] = lambda: _importlib.import_module(".scipy.optimize", __name__)
_ENTERED_LATER["scipy.interpolate"] = lambda: _importlib.import_module(".scipy.interpolate", __name__)
_ENTERED_LATER["scipy.signal"] = lambda: _importlib.import_module(".scipy.signal", __name__)
_ENTERED_LATER["scipy.linalg"] = lambda: _importlib.import_module(".scipy.linalg", __name__)
_ENTERED_LATER["scipy.stats"] = lambda: _importlib.import_module(".scipy.stats", __name__)
_ENTERED_LATER["scipy.ndimage"] = lambda: _importlib.import_module(".scipy.ndimage", __name__)

# What writes HTML for notebooks is imported when something is shown.
_Displayed._page_of = lambda x: _importlib.import_module(".debug.pages.page", __name__).page_of(x)

# What writes programs down is imported when one is written.
_Storable._storage = lambda name: _importlib.import_module(f".storage.{name}", __name__)
