"""How far the two forms of each program differ: in lines, and where torch is installed in losses and in time.

    python examples/torch_side_by_side/compare.py [NAME ...] [--steps 30]

A program NAME is two files, NAME_torch.py and NAME_ftrans.py, and where there is a NAME_compiled.py, it is the form in
ftrans with compiled steps.  Each has `build()`, which makes a module or several, and
`train(*modules, steps)`, which returns the loss of each step.  Losses are compared from the same weights, with the same
batches and the same random numbers.  The program fails if more than 15 % of the lines of a program differ.
"""

import argparse
import ast
import importlib
import sys
import time
from contextlib import contextmanager
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LIMIT = 0.15


def names():
    """The programs."""
    return sorted(path.name.removesuffix("_torch.py") for path in HERE.glob("*_torch.py"))


def lines_of(path):
    """The lines of a file that are code: no blank ones, comments or docstrings."""
    text = path.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    numbered = enumerate((line.strip() for line in text.splitlines()), start=1)
    return [line for number, line in numbered if line and not line.startswith("#") and number not in docstrings]


def forms_in_ftrans(name):
    """The forms of a program in ftrans: "ftrans", and "compiled" where there is one."""
    return [form for form in ("ftrans", "compiled") if (HERE / f"{name}_{form}.py").exists()]


def count_lines(name, form="ftrans"):
    """The number of lines of the form in torch, and of lines that differ.

    A line that is changed counts once, and so does one that only one of the forms has.
    """
    theirs, ours = (lines_of(HERE / f"{name}_{which}.py") for which in ("torch", form))
    changes = SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes()
    differing = sum(max(to - start, to2 - start2) for kind, start, to, start2, to2 in changes if kind != "equal")
    return len(theirs), differing


def form_of(name, form):
    """The module of one form of a program."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    return importlib.import_module(f"{name}_{form}")


def build(form):
    """The modules of a form as a tuple, without dropout, whose random numbers differ."""
    built = form.build()
    modules = built if isinstance(built, tuple) else (built,)
    for part in (part for module in modules for part in module.modules()):
        for name in ("p", "dropout"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)
    return modules


@contextmanager
def draws_of_ftrans(form):
    """A block in which a form in torch draws random numbers and shuffles batches as ftrans does."""
    import torch
    from torch.overrides import TorchFunctionMode

    import ftrans.autograd
    from ftrans import nn

    def normal(x, mean=0.0, std=1.0):
        numbers = nn.distributions.Normal(np.zeros(x.shape, np.float32), np.float32(1)).sample()
        return x.copy_(mean + std * torch.from_numpy(numbers))

    def multinomial(probs, count, replacement=False):
        found = nn.distributions.Categorical(probs=probs.detach().numpy()).sample((count,))
        return torch.from_numpy(np.asarray(found).T)

    def drawn(name):
        def draw(*arguments, **options):
            found = torch.from_numpy(np.asarray(getattr(ftrans.autograd, name)(*arguments, **options)))
            return found.to(torch.get_default_dtype()) if found.is_floating_point() else found

        return draw

    replaced = {getattr(torch, name): drawn(name) for name in ("rand", "randn", "randint")}
    replaced |= {torch.Tensor.normal_: normal, torch.multinomial: multinomial}

    class Draws(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return replaced.get(function, function)(*args, **(kwargs or {}))

    def loader(*arguments, **options):
        return _OfTorch(nn.data.DataLoader(*arguments, **options))

    own = getattr(form, "DataLoader", None)
    try:
        if own is not None:
            form.DataLoader = loader
        with Draws():
            yield
    finally:
        if own is not None:
            form.DataLoader = own


class _OfTorch:
    """The batches of a loader, as tensors of torch."""

    def __init__(self, loader):
        self.loader = loader
        self.dataset = loader.dataset

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield [_of_torch(x) for x in batch] if isinstance(batch, tuple | list) else _of_torch(batch)


def _of_torch(x):
    import torch

    return torch.from_numpy(np.array(x))


def losses_of(form, steps, states=None):
    """The losses of a form, which trains from the same seed each time.

    Args:
        form: the module of the form.
        steps: number of steps.
        states: the weights of its modules; by default those that a form in ftrans begins with.
    """
    from ftrans import nn

    nn.manual_seed(0)
    modules = build(form)
    for module, state in zip(modules, states or (), strict=states is not None):
        module.load_state_dict(state)
    nn.manual_seed(0)
    return np.array(form.train(*modules, steps=steps))


def curves(name, steps, form="ftrans"):
    """The losses of the form in torch, and of a form in ftrans."""
    from ftrans import nn

    theirs, ours = form_of(name, "torch"), form_of(name, form)
    nn.manual_seed(0)
    states = [nn.to_torch(module) for module in build(ours)]
    with draws_of_ftrans(theirs):
        in_torch = losses_of(theirs, steps, states)
    return in_torch, losses_of(ours, steps)


def times(name, steps, form="ftrans", rounds=3):
    """The CPU time of a step in seconds, of the form in torch and of a form in ftrans, measured alternately."""
    forms = [form_of(name, which) for which in ("torch", form)]
    models = [build(form) for form in forms]

    def time_of(form, modules):
        begin = time.process_time()
        form.train(*modules, steps=1)
        middle = time.process_time()
        form.train(*modules, steps=steps + 1)
        # What training begins with, such as making the data, is in both.
        return (time.process_time() - 2 * middle + begin) / steps

    # The first round has what each form does once, which would be subtracted twice.
    return np.min([list(map(time_of, forms, models)) for _ in range(rounds + 1)][1:], axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=names(), metavar="NAME")
    parser.add_argument("--steps", type=int, default=30, help="how many steps each form trains for")
    args = parser.parse_args()
    with_torch = find_spec("torch") is not None
    print(f"{'program':<16}{'lines':>7}{'differ':>8}{'':>7}", end="")
    print(f"{'loss':>18}{'largest difference':>21}{'CPU time of a step':>28}" if with_torch else "")
    too_many = []
    rows = [(name, form) for name in args.names for form in forms_in_ftrans(name)]
    for name, form in rows:
        label = name if form == "ftrans" else f"{name}, {form}"
        lines, differing = count_lines(name, form)
        print(f"{label:<16}{lines:>7}{differing:>8}{differing / lines:>7.1%}", end="", flush=True)
        if differing > LIMIT * lines:
            too_many.append(label)
        if with_torch:
            theirs, ours = curves(name, args.steps, form)
            of_torch, of_ftrans = times(name, args.steps, form)
            ratio = f"{of_ftrans * 1e3:.1f} ms, {of_ftrans / of_torch:.2f}x torch"
            print(f"{f'{ours[0]:.3g} to {ours[-1]:.3g}':>18}{abs(theirs - ours).max():>21.1e}{ratio:>28}", end="")
        print()
    if too_many:
        sys.exit(f"more than {LIMIT:.0%} of the lines differ: {', '.join(too_many)}")


if __name__ == "__main__":
    main()
