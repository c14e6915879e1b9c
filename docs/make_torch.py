"""Writes docs/torch.md: what the public names of torch for training are called here.

    python docs/make_torch.py

Where torch is installed, the names are its own; elsewhere, those that the page has.  What exists here says the code
itself, so that a name that is added changes the page by itself.  Only other names, and what to write in place of names
that are missing, are listed here.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "torch.md"
sys.path[:0] = [str(ROOT)]

from torch_remarks import INSTEAD, OTHERWISE, REMARKS  # noqa: E402

from ftrans.nn.modules.not_here import NotHere  # noqa: E402

# Where the names of each namespace are found here, the first place first.
PLACES: dict[str, tuple[str, ...]] = {
    "torch.nn": ("nn",),
    "torch.nn.Module": ("nn.Module",),
    "torch.nn.functional": ("nn.functional",),
    "torch.nn.init": ("nn.init",),
    "torch.nn.utils": ("nn.utils", "nn"),
    "torch.nn.utils.rnn": ("nn.utils.rnn",),
    "torch.nn.utils.parametrize": ("nn.utils.parametrize",),
    "torch.nn.utils.parametrizations": ("nn.utils.parametrizations",),
    "torch.nn.utils.prune": ("nn.utils.prune",),
    "torch.optim": ("nn.optim",),
    "torch.optim.lr_scheduler": ("nn.optim.lr_scheduler",),
    "torch.optim.swa_utils": ("nn.optim.swa_utils",),
    "torch.distributions": ("nn.distributions",),
    "torch.distributions.constraints": ("nn.distributions.constraints",),
    "torch.utils.data": ("nn.data",),
    "torch.autograd": ("autograd",),
    "torch.autograd.functional": ("autograd.functional",),
    "torch.autograd.forward_ad": ("autograd.forward_ad",),
    "torch.autograd.graph": ("autograd.graph",),
}
# Names that torch uses inside, and that no program has.
INTERNAL = re.compile(
    "BroadcastingList.|ScalingType|SwizzleType|Tensor|assert_int_or_pair|boolean_dispatch|.*torch_function.*"
    "|factory_kwargs|T_destination|call_super_init|dump_patches|ipu|mtia|xpu|argument_validation|functional_datapipe"
    "|guaranteed_datapipes_determinism|non_deterministic|runtime_validation.*|DFIterDataPipe|DataChunk|.*_notes"
    "|NestedIOFunction|enforce_grad_layout_policy|region_activation_memory_budget|set_override_.*|set_warn_on_.*"
)
# Arguments that torch keeps for old programs, or ignores.
OLD_ARGUMENTS = {"size_average", "reduce", "_stacklevel", "memo", "only_inputs", "grad_variables", "orig_func", "self"}


@dataclass(frozen=True)
class Entry:
    """What one name of torch is called here.

    Attributes:
        name: the name in the namespace.
        kind: "same", "other" or "no".
        remark: the other name, what to write instead, or which arguments are missing.
    """

    name: str
    kind: str
    remark: str = ""


def torch_of(namespace: str) -> Any:
    """A module or class of torch; None where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    name = namespace.rpartition(".")[2]
    return importlib.import_module("torch.nn").Module if name == "Module" else importlib.import_module(namespace)


def public(namespace: str) -> list[str]:
    """The public names of torch, in alphabetical order."""
    found = torch_of(namespace)
    if found is None:
        return names_on_page(namespace)
    listed = getattr(found, "__all__", None)
    if listed is None:
        listed = [name for name in dir(found) if isinstance(found, type) or _is_from_torch(getattr(found, name))]
    shown = [n for n in listed if not n.startswith("_") and not INTERNAL.fullmatch(n)]
    return sorted({n for n in shown if not inspect.ismodule(getattr(found, n))}, key=lambda n: (n.lower(), n))


def _is_from_torch(x: Any) -> bool:
    # Functions that are written in C say nothing of where they are from.
    return str(getattr(x, "__module__", None) or "torch").startswith("torch") and callable(x)


def names_on_page(namespace: str) -> list[str]:
    """The names that the page has."""
    section = re.search(rf"## {re.escape(namespace)}\n(.*?)(?=\n## |\Z)", PAGE.read_text(), re.DOTALL)
    if section is None:
        return []
    same, _, table = section[1].partition("\n|")
    found = re.findall(r"`(\w+)`", same.partition("Same:")[2]) + re.findall(
        r"^\| `(\w+)` \|", f"|{table}", re.MULTILINE
    )
    return sorted(found, key=lambda n: (n.lower(), n))


def ours(place: str, name: str) -> Any:
    """What a place here has under a name, or None."""
    found: Any = importlib.import_module("ftrans")
    for part in place.split("."):
        found = getattr(found, part, None)
    there = getattr(found, name, None) if found is not None else None
    return None if isinstance(there, NotHere) else there


def entry(namespace: str, name: str) -> Entry:
    """What a name of torch is called here."""
    full = f"{namespace}.{name}"
    first, *others = PLACES[namespace]
    if ours(first, name) is not None:
        return Entry(name, "same", "; ".join(filter(None, [missing_arguments(namespace, name), REMARKS.get(full, "")])))
    for place in others:
        if ours(place, name) is not None:
            return Entry(name, "other", f"`{place}.{name}`")
    if full in OTHERWISE:
        return Entry(name, "other", OTHERWISE[full])
    return Entry(name, "no", INSTEAD.get(full, INSTEAD.get(namespace, "")))


def missing_arguments(namespace: str, name: str) -> str:
    """The arguments that torch takes and this library does not."""
    mine = _parameters(ours(PLACES[namespace][0], name))
    if mine is None or "**" in mine:
        return ""
    found = torch_of(namespace)
    theirs = _parameters(getattr(found, name)) if found is not None else _on_page(namespace, name)
    lacking = [p for p in theirs or () if p not in mine and p not in OLD_ARGUMENTS and "*" not in p]
    return f"without {', '.join(f'`{p}`' for p in lacking)}" if lacking else ""


def _on_page(namespace: str, name: str) -> list[str]:
    """The arguments that the page says are missing."""
    section = PAGE.read_text().partition(f"## {namespace}\n")[2].partition("\n## ")[0]
    row = re.search(rf"^\| `{name}` \| same \| without ([^;|]*)", section, re.MULTILINE)
    return re.findall(r"`(\w+)`", row[1]) if row else []


def _parameters(x: Any) -> list[str] | None:
    """The names of the arguments of a function or class; "**" where it takes any."""
    if not callable(x):
        return None
    try:
        found = inspect.signature(x).parameters.values()
    except (ValueError, TypeError):
        return None
    return ["**" if p.kind is p.VAR_KEYWORD else f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in found]


def entries(namespace: str) -> list[Entry]:
    """What each public name of a namespace of torch is called here."""
    return [entry(namespace, name) for name in public(namespace)]


INTRODUCTION = """# Names of PyTorch, and what they are here

Use this page if you port a program from PyTorch: it lists the public names of `torch` for training, and what to write
for each of them. Layers, functions, optimizers and distributions of the same name take the same arguments, except where
a remark says otherwise; the tests compare them with figures made with PyTorch. Arguments that PyTorch keeps only for
old programs (`size_average`, `reduce`) are left out, so pass options of losses by name.

`docs/make_torch.py` writes this page from the code, and a test keeps it complete where PyTorch is installed.
"""


def section(namespace: str) -> Iterator[str]:
    """The lines of a namespace on the page."""
    found = entries(namespace)
    yield f"## {namespace}"
    yield ""
    there = ours(*PLACES[namespace][0].rpartition(".")[::2]) if "." in PLACES[namespace][0] else True
    place = f"In `ftrans.{PLACES[namespace][0]}`." if there is not None else "There is no such module here."
    same = [f"`{e.name}`" for e in found if e.kind == "same" and not e.remark]
    yield from wrapped(f"{place} Same: {', '.join(same)}." if same else place)
    rest = [e for e in found if e.kind != "same" or e.remark]
    if rest:
        yield from ("", "| PyTorch | ftrans | remarks |", "|---|---|---|")
    for e in rest:
        here, remark = (e.remark, "") if e.kind == "other" else (e.kind, e.remark)
        name, _, more = here.partition("; ")
        yield f"| `{e.name}` | {name} | {more or remark} |"
    yield ""


def wrapped(text: str) -> Iterator[str]:
    """Lines of at most 120 characters."""
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > 120:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def page() -> str:
    """The page."""
    return "\n".join([INTRODUCTION, *[line for namespace in PLACES for line in section(namespace)]])


if __name__ == "__main__":
    PAGE.write_text(page())
