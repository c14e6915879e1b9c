"""A page of the documentation as the tests run it: blocks of Python, and what the page says that they print.

What a block prints stands behind a `print`, in a comment, or below the block, in a block of text.  The blocks of a page
are one script, `PAGE.py`, and a block that begins with `# NAME.py` begins another: that is how the library names lines.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import linecache
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"# (\w+\.py)\n")
PRINTED = re.compile(r"\)  # (.+)")
NUMBER = r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?"
WORD = re.compile(rf"{NUMBER}(?:\.\.\.)?|\.\.\.|[^\W\d]\w*|\S")
MEASURED = re.compile(r"\d+\.?\d*(?: (?:ns|us|ms|s|min)\b| ?%)")
ANY = "..."


@dataclass(frozen=True)
class Block:
    """A block of Python.

    line: on the page, that of its first line.
    shown: the block of text below it, if there is one; `measured` if it has times.
    script, start: the script that it is a part of, and its first line there.
    """

    page: Path
    line: int
    code: str
    is_cell: bool
    shown: str | None
    measured: bool
    script: str
    start: int

    @property
    def is_session(self) -> bool:
        return ">>>" in self.code

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of Python on a page.  A block of text that follows none is an error."""
    text = page.read_text(encoding="utf-8")
    fences = [(m[2].split() or [""], m[3], text.count("\n", 0, m.start(3)) + 1) for m in FENCE.finditer(text)]
    blocks: list[Block] = []
    script, lengths = f"{page.stem}.py", Counter[str]()
    for i, (info, code, line) in enumerate(fences):
        if info[0] == "text":
            of_block = i > 0 and is_python(fences[i - 1][0])
            assert of_block, (
                f"{page.name}:{line}: this is no output of a block of Python: call it something else than text"
            )
        if not is_python(info):
            continue
        if name := SCRIPT.match(code):
            script = name[1]
        (kind, *options), shown, _ = fences[i + 1] if i + 1 < len(fences) else ([""], "", 0)
        said = shown if kind == "text" else None
        block = Block(page, line, code, info != ["python"], said, "measured" in options, script, lengths[script] + 1)
        blocks.append(block)
        lengths[script] += 0 if block.is_session else code.count("\n")
    return blocks


def is_python(info: list[str]) -> bool:
    return info in (["python"], ["{code-cell}", "python"])


class Runner:
    """Runs blocks of a page in one namespace, in the working directory, and compares what they print."""

    def __init__(self, blocks: list[Block]) -> None:
        self.namespace: dict[str, object] = {"__name__": "__main__"}
        # The library reads the user's lines in these files.
        for script in {block.script for block in blocks}:
            code = "".join(block.code for block in blocks if block.script == script and not block.is_session)
            Path(script).write_text(code, encoding="utf-8")
        linecache.clearcache()

    def run(self, block: Block) -> None:
        """Run a block.

        Raises:
            AssertionError: it prints something else than the page says, or something that does not stand there.
        """
        try:
            (self._run_session if block.is_session else self._run_statements)(block)
        except Exception as error:
            error.add_note(f"in the block at {block.where}")
            raise

    def _run_session(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(
            block.code, self.namespace, block.page.name, str(block.page), block.line - 1
        )
        runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        report = io.StringIO()
        assert runner.run(test, out=report.write, clear_globs=False).failed == 0, report.getvalue()
        self.namespace = test.globs

    def _run_statements(self, block: Block) -> None:
        code = "\n" * (block.start - 1) + block.code
        lines, rest = code.splitlines(), ""
        for statement in ast.parse(code).body:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(ast.Module([statement], []), block.script, "exec"), self.namespace)
            said = said_in(statement, lines)
            if said is None:
                rest += printed.getvalue()
            else:
                where = f"{block.page.name}:{block.line + statement.lineno - block.start}"
                assert_same(printed.getvalue(), said, where)
        if block.shown is not None or not block.is_cell:
            assert_same(rest, block.shown or "", block.where, block.measured)


def said_in(statement: ast.stmt, lines: list[str]) -> str | None:
    """What the comments behind the `print`s of a statement say, if there are any."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return None
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    prints = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    ends = [(lines[call.end_lineno - 1], call.end_col_offset) for call in prints]
    said = [match[1] for line, end in ends if (match := PRINTED.match(line.encode()[end - 1 :].decode()))]
    return "\n".join(said) if said else None


class Checker(doctest.OutputChecker):
    """Output of sessions is compared as that of other blocks."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or is_same(got, want)


def assert_same(printed: str, said: str, where: str, measured: bool = False) -> None:
    """Whether the output of a block is what the page says; see `is_same`."""
    printed = printed.strip()
    assert is_same(printed, said, measured), f"{where} prints\n{printed}\nand the page says\n{said or 'nothing'}"


def is_same(printed: str, said: str, measured: bool = False) -> bool:
    """Whether two texts have the same words and the same numbers up to rounding.

    An ellipsis stands for any text, `0.12...` for any number that begins so.  With `measured`, a time or a percentage
    stands for any.
    """
    found, wanted = words(printed, measured), words(said, measured)
    pieces: list[list[str]] = [[]]
    for word in wanted:
        if word == ANY:
            pieces.append([])
        else:
            pieces[-1].append(word)
    first, *between = pieces
    if not between:
        return alike(found, first)
    *between, last = between
    end = len(found) - len(last)
    if end < len(first) or not alike(found[: len(first)], first) or not alike(found[end:], last):
        return False
    found = found[len(first) : end]
    for piece in between:
        # The first place where a piece may stand leaves most to the others.
        places = (i for i in range(len(found) + 1) if alike(found[i : i + len(piece)], piece))
        if (place := next(places, None)) is None:
            return False
        found = found[place + len(piece) :]
    return True


def words(text: str, measured: bool) -> list[str]:
    """The words, signs and numbers of a text."""
    return WORD.findall(MEASURED.sub("measured", text) if measured else text)


def alike(found: list[str], wanted: list[str]) -> bool:
    """Whether words are as they are wanted, none of which is an ellipsis."""
    return len(found) == len(wanted) and all(map(is_alike, found, wanted))


def is_alike(found: str, wanted: str) -> bool:
    if wanted.endswith(ANY):
        return found.startswith(wanted.removesuffix(ANY))
    if re.fullmatch(NUMBER, found) and re.fullmatch(NUMBER, wanted):
        return math.isclose(float(found), float(wanted), rel_tol=1e-6, abs_tol=1e-9)
    return found == wanted
