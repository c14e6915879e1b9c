"""The table of rewrites."""

from __future__ import annotations

from functools import partial

from ..core.primitive import Primitive
from ..core.program import Program
from ..ops.broadcast import reduce_sum
from ..ops.contractions import dot_general
from ..ops.elementwise import add, div, exp, log, mul, sub
from ..ops.indexing import gather, scatter_add, scatter_set
from ..ops.linalg import cholesky, solve
from ..ops.parts import concatenate, slice_
from ..ops.shapes import transpose
from ..ops.slices import add_slice, set_slice
from .equations import solve_by_factor
from .layouts import (
    OPERATIONS,
    operation_on_transposed,
    product_of_transposed,
    sum_of_transposed,
    transposed_product,
)
from .low_rank import sum_of_matrix_products
from .moves import (
    added_in_a_row,
    added_side_by_side,
    joined_parts,
    read_in_a_row,
    read_in_runs,
    set_in_a_row,
    set_to_sum,
    set_to_sum_at_indices,
    slice_of_part,
)
from .products import product_of_product, sum_of_products
from .rule import Rule, Stage
from .shifts import difference_without_shift, product_without_shift, quotient_without_shift, sum_without_shift

RULES = (
    Rule(
        name="part of a part",
        says="x[a:b:s][c:d:t] = x[a + s*c : a + s*d : s*t];  concatenate(x, y)[c:d] = x[c:d] for d <= len(x)",
        because="element i of the left is x[a + s*(c + t*i)], and so is that of the right",
        pays=None,
        stage=Stage.ANY,
        primitive=slice_,
        apply=slice_of_part,
    ),
    Rule(
        name="joined parts",
        says="concatenate(x[a:b], x[b:c]) = x[a:c];  concatenate(concatenate(x, y)[a:], z) = concatenate(x[a:], y, z)",
        because="both are the same elements in the same order",
        pays=None,
        stage=Stage.ANY,
        primitive=concatenate,
        apply=joined_parts,
    ),
    Rule(
        name="read in a row",
        says="x[[a, a + s, ..., b]] = x[a : b + 1 : s]",
        because="a slice is its own list of indices",
        pays=None,
        stage=Stage.ANY,
        primitive=gather,
        apply=read_in_a_row,
    ),
    Rule(
        name="read in runs",
        says="x[[a, a, ..., a, a + 1, ..., b]] = concatenate(broadcast(x[a]), x[a : b + 1])",
        because="both are the same elements in the same order",
        pays="for few runs of indices, since the derivative adds slices in place of single elements",
        stage=Stage.ANY,
        primitive=gather,
        apply=read_in_runs,
    ),
    Rule(
        name="set to sum",
        says="x.at[a:b].set(x[a:b] + u) = x.at[a:b].add(u);  x.at[a:b].set(x[a:b] - u) = x.at[a:b].add(-u)",
        because="both are the same sums of two numbers; the derivative of the right by x is the identity",
        pays=None,
        stage=Stage.ANY,
        primitive=set_slice,
        apply=set_to_sum,
    ),
    Rule(
        name="added side by side",
        says="x.at[a:b].add(u).at[b:c].add(v) = x.at[a:c].add(concatenate(u, v))",
        because="no element is in both parts, so each is the same sum of two numbers",
        pays="compiled, where what is joined is not stored; this is the derivative of numpy.roll",
        stage=Stage.COMPILED,
        primitive=add_slice,
        apply=added_side_by_side,
    ),
    Rule(
        name="set to sum at indices",
        says="x.at[i].set(x[i] + u) = x.at[i].add(u)",
        because="no index occurs twice, so both are the same sums of two numbers",
        pays="in derivatives, which by x are the identity; NumPy writes faster than it adds at indices",
        stage=Stage.DIFFERENTIATED,
        primitive=scatter_set,
        apply=set_to_sum_at_indices,
        needs=(gather, add),
    ),
    Rule(
        name="added in a row",
        says="x.at[[a, a + s, ..., b]].add(u) = x.at[a : b + 1 : s].add(u), and x + u for all indices",
        because="no index occurs twice, so each element is one sum of two numbers on both sides",
        pays=None,
        stage=Stage.ANY,
        primitive=scatter_add,
        apply=added_in_a_row,
    ),
    Rule(
        name="set in a row",
        says="x.at[[a, a + s, ..., b]].set(u) = x.at[a : b + 1 : s].set(u), and u for all indices",
        because="no index occurs twice, so each element is that of u, or that of x",
        pays=None,
        stage=Stage.ANY,
        primitive=scatter_set,
        apply=set_in_a_row,
    ),
    Rule(
        name="sum without its shift",
        says="m + log(sum(w * exp(x - m))) = stop(m) + log(sum(w * exp(x - stop(m))))",
        because="with m + c for m, the logarithm becomes that of exp(-c) times the sum, so the result does not change",
        pays=None,
        stage=Stage.DIFFERENTIATED,
        primitive=add,
        apply=sum_without_shift,
        needs=(exp, log),
    ),
    Rule(
        name="difference without its shift",
        says="(x - m) - log(sum(exp(x - m))) = (x - stop(m)) - log(sum(exp(x - stop(m))))",
        because="with m + c for m, both the difference and the logarithm become less by c",
        pays=None,
        stage=Stage.DIFFERENTIATED,
        primitive=sub,
        apply=difference_without_shift,
        needs=(exp, log),
    ),
    Rule(
        name="quotient without its shift",
        says="exp(x - m) / sum(exp(x - m)) = exp(x - stop(m)) / sum(exp(x - stop(m)))",
        because="with m + c for m, both sides of the quotient are multiplied by exp(-c)",
        pays=None,
        stage=Stage.DIFFERENTIATED,
        primitive=div,
        apply=quotient_without_shift,
        needs=(exp,),
    ),
    Rule(
        name="product without its shift",
        says="exp(x - m) * (1 / sum(exp(x - m))) = exp(x - stop(m)) * (1 / sum(exp(x - stop(m))))",
        because="with m + c for m, one factor is multiplied by exp(-c) and the other by exp(c)",
        pays=None,
        stage=Stage.DIFFERENTIATED,
        primitive=mul,
        apply=product_without_shift,
        needs=(exp, div),
    ),
    Rule(
        name="sum of products",
        says="sum(a[:, :, None] * b[None] * d[:, None], 1) = (a * d) @ b",
        because="the definition of the product of matrices; sums over an axis of one factor alone are taken before",
        pays="where neither factor has all axes; for a matrix and a vector, where the matrix is large and in memory",
        stage=Stage.COMPILED,
        primitive=reduce_sum,
        apply=sum_of_products,
        needs=(mul,),
    ),
    Rule(
        name="product of product",
        says="(a @ b) @ y = a @ (b @ y);  x @ (a @ b) = (x @ a) @ b",
        because="products of matrices are associative",
        pays="where it takes half of the multiplications or less, and nothing else uses the inner product",
        stage=Stage.COMPILED,
        primitive=dot_general,
        apply=product_of_product,
    ),
    Rule(
        name="sum of matrix products",
        says="w * (a @ b + s[:, None]) + v * (c @ d) = concatenate([a, s[:, None], c], 1) @ "
        "concatenate([w * b, w[None], v * d])",
        because="products of matrices are linear, and a product of joined matrices is the sum of their products",
        pays="where joining the matrices touches fewer elements than the equations on the left",
        stage=Stage.COMPILED,
        primitive=add,
        apply=sum_of_matrix_products,
        needs=(dot_general,),
    ),
    Rule(
        name="solve by a factor",
        says="solve(cholesky(a), b) = triangular_solve(cholesky(a), b)",
        because="a Cholesky factor is a lower triangle",
        pays=None,
        stage=Stage.COMPILED,
        primitive=solve,
        apply=solve_by_factor,
        needs=(cholesky,),
    ),
    Rule(
        name="transposed product",
        says="einsum('kij,knj->kin', a, b).transpose(2, 0, 1) = einsum('knj,kij->kni', b, a).transpose(1, 0, 2)",
        because="the transpose of a product of two matrices is the product of the transposes in the other order",
        pays="where the last axis then is the last one of the product, so that rows are moved as a whole",
        stage=Stage.COMPILED,
        primitive=transpose,
        apply=transposed_product,
        needs=(dot_general,),
    ),
    *(
        Rule(
            name="operation on a transposed array",
            says="f(x.T, y) = f(x, y.T).T",
            because="f acts on each element by itself",
            pays="for results of products of stacks of matrices, where y.T is the transpose of less than x",
            stage=Stage.COMPILED,
            primitive=primitive,
            apply=partial(operation_on_transposed, primitive),
            needs=(dot_general, transpose),
        )
        for primitive in OPERATIONS
    ),
    Rule(
        name="sum of a transposed array",
        says="sum(x.T, 0) = sum(x, 1)",
        because="the same elements are added up",
        pays="for results of products of stacks of matrices",
        stage=Stage.COMPILED,
        primitive=reduce_sum,
        apply=sum_of_transposed,
        needs=(dot_general,),
    ),
    Rule(
        name="product of transposed arrays",
        says="einsum('kij,kjn->kin', a, b.transpose(1, 2, 0)) = einsum('kij,nkj->kin', a, b)",
        because="axes that are summed over have no order",
        pays="for what is made of other such products, or of broadcasts that can have the axes in another order",
        stage=Stage.COMPILED,
        primitive=dot_general,
        apply=product_of_transposed,
    ),
)  # fmt: skip


def _by_primitive() -> dict[Stage, dict[Primitive, tuple[Rule, ...]]]:
    found: dict[Stage, dict[Primitive, tuple[Rule, ...]]] = {}
    for stage in Stage:
        applied = [rule for rule in RULES if rule.stage in (Stage.ANY, stage)]
        primitives = dict.fromkeys(rule.primitive for rule in applied)
        found[stage] = {p: tuple(rule for rule in applied if rule.primitive is p) for p in primitives}
    return found


# The rules for programs of a stage, by primitive: those of the stage itself, and those for any program.
rules = _by_primitive()


def has_rules_for(program: Program, stage: Stage) -> bool:
    """Whether a rule of this stage alone may be applied to a program."""
    primitives = {eqn.primitive for eqn in program.eqns}
    return any(rule.stage is stage and primitives.issuperset((rule.primitive, *rule.needs)) for rule in RULES)
