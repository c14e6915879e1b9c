"""The compiled evaluator: programs lowered to XLA through public JAX calls.  Importing this does not import JAX."""

from .compiled import Compiled, Costs, Division, OtherTypes
from .divided import are_equal, copied, gathered, in_64_bits, is_readable
from .execute import (
    about_to_run,
    device_arrays,
    jax_leaves,
    put_on_device,
    run_function,
    run_program,
    to_numpy,
)
from .fusion import usual_limit
from .kinds import is_jax, is_jax_tracer, is_traced
from .meshes import with_auto_axes
from .placing import Placement, is_mesh, parts_along, place, placement, placement_of
from .precision import Precision
from .tune import fastest

__all__ = [
    "Compiled",
    "Costs",
    "Division",
    "OtherTypes",
    "Placement",
    "Precision",
    "about_to_run",
    "are_equal",
    "copied",
    "device_arrays",
    "fastest",
    "gathered",
    "in_64_bits",
    "is_jax",
    "is_jax_tracer",
    "is_mesh",
    "is_readable",
    "is_traced",
    "jax_leaves",
    "parts_along",
    "place",
    "placement",
    "placement_of",
    "put_on_device",
    "run_function",
    "run_program",
    "to_numpy",
    "usual_limit",
    "with_auto_axes",
]
