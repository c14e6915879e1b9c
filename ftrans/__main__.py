"""The command line: `python -m ftrans doctor`, `trace` and `launch`."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from .commands import doctor, launching, showing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ftrans", description="Tools of ftrans.")
    commands = parser.add_subparsers(dest="command", required=True)

    told = commands.add_parser(
        "doctor",
        help="say what is installed, whether it works, and what makes it slow",
        description="Say what is installed, whether it works, and what makes it slow. Bug reports should have this.",
    )
    told.add_argument("--json", action="store_true", help="print it as JSON")

    traced = commands.add_parser(
        "trace",
        help="print the program of a function, and draw it",
        description="Print the program of a function, and draw it.",
    )
    traced.add_argument("function", help="module:function, or file.py:function")
    traced.add_argument(
        "--args",
        nargs="*",
        default=[],
        metavar="ARGUMENT",
        help="its arguments: expressions such as 2.0 and 'np.ones(3)', or types such as 'f64[3]', for arrays of ones",
    )
    traced.add_argument("--transform", choices=showing.TRANSFORMATIONS, help="show this derivative of it")
    traced.add_argument("--rolled", action="store_true", help="show loops of Python as loops, as jit compiles them")
    traced.add_argument("--svg", metavar="FILE", help="draw it by Graphviz to a file: .svg, .png, .pdf or .dot")

    launching.add_command(commands)

    given = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A file or a pipe of Windows takes 250 characters, and a name in a program may have any other.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if given.command == "doctor":
        return doctor.run(given.json)
    if given.command == "trace":
        return showing.run(given.function, given.args, given.transform, given.rolled, given.svg)
    return launching.run(given)


if __name__ == "__main__":
    sys.exit(main())
