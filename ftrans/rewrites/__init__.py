"""Rewrites: a table of equations that programs are rewritten by, from left to right.

A rule of a primitive (`Primitive.simplify`) sees the operands of one equation, and drops what is neutral. A rewrite
sees how the operands were made, and puts something cheaper in the place of the whole: the slice of a slice is one
slice. The rules are in `table.py`. Each says, as mathematics, which expressions are equal; in one line, why; and when
the right hand side is cheaper, if not always. Its function finds the left hand side, and records the right hand side.

Where a rule may be applied follows from what it keeps, its `Stage`:

* ANY: results are the same bits. It is applied by `simplify` and by `condense`, so before programs run, on whatever
  device, and before they are transformed.
* DIFFERENTIATED: values are the same bits, and derivatives of every order the same functions, where they exist and at
  the ties and kinks for which `docs/semantics.md` promises something. It is applied to what is about to be
  differentiated, by `transforms/jvp.py: prepared`; the program that runs stays as it was.
* COMPILED: the result is equal in exact arithmetic, but may be rounded otherwise, and overflow or vanish elsewhere at
  the ends of the range. It is applied to what XLA is about to compile, by `transforms/simplify.py: for_compiler`. So
  un-jitted code gives NumPy's bits, and compiled code, where XLA reorders sums as well, is equal up to rounding.

How a rule is applied: `transforms/simplify.py` walks through a program once, forwards, and records each equation in a
new one. The rules for the primitive of an equation are tried in the order of the table, after the primitive's own. They
get the operands in the new program, so that what was rewritten before is seen as what it is now. What no longer has a
user is dropped afterwards; a value that has others is computed as before, which is what conditions on the number of
uses are for (`Operands.users`). No equation is recorded twice, so a rule may record again what is there already; and
rules that bring equal values into equal form let later equations be shared.

What a rule must not do: make a derivative of a singular function out of one that is smooth, since derivatives are taken
of the right hand side as well; add zeros to what may be -0.0; compute what overflows where the left hand side does not;
or compute for more elements than the left hand side, unless the condition says that it pays.

How rules are tested (`tests/test_rewrites.py`): each has samples in which it is applied, that compare results and
derivatives with and without the table; `tests/rewriting.py: without_rewrites` is the switch. Random programs are
compared in the same way.
"""
