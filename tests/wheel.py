"""What `make dist` has built: the files of the wheel and the sdist, and README's tour with nothing but the wheel."""

from __future__ import annotations

import doctest
import importlib.util
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORTED = re.compile(r"^(?:>>> )?(?:import|from) (\w+)", re.MULTILINE)


def faults_of_wheel(names: Iterable[str]) -> list[str]:
    """What is wrong with the files of a wheel: strangers in it, and files of the library that are not."""
    names = set(names)
    library = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "ftrans").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    strangers = {name for name in names - library if not re.match(r"ftrans-[^/]+\.dist-info/", name)}
    return [f"not of the library: {name}" for name in sorted(strangers)] + [
        f"missing: {name}" for name in sorted(library - names)
    ]


def faults_of_sdist(names: Iterable[str]) -> list[str]:
    """What of the project is not among the files of an sdist."""
    parts = {"/".join(name.split("/")[1:]) for name in names}
    wanted = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "ftrans/py.typed", "tests/wheel.py")
    return [f"missing: {name}" for name in wanted if name not in parts]


def check(folder: Path) -> int:
    """Print what is wrong with the only wheel and the only sdist of a folder; return an exit code."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as files:
        faults = [f"{wheel.name}: {fault}" for fault in faults_of_wheel(files.namelist())]
    with tarfile.open(sdist) as files:
        faults += [f"{sdist.name}: {fault}" for fault in faults_of_sdist(files.getnames())]
    print(*faults or [f"{wheel.name} and {sdist.name} have what they should."], sep="\n")
    return 1 if faults else 0


def run_tour() -> int:
    """Run README's blocks with the installed library, up to the first that imports what is not installed."""
    import ftrans

    if not Path(ftrans.__file__).resolve().is_relative_to(Path(sys.prefix).resolve()):
        print(f"this is not the installed library: {ftrans.__file__}")
        return 1
    namespace: dict[str, object] = {"__name__": "__main__"}
    count = 0
    for match in BLOCK.finditer((ROOT / "README.md").read_text(encoding="utf-8")):
        if not all(importlib.util.find_spec(name) for name in IMPORTED.findall(match[1])):
            break
        count += 1
        name = f"README.md, block {count}"
        if match[1].startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(match[1], namespace, name, "README.md", 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            if runner.run(session, clear_globs=False).failed:
                return 1
            namespace = session.globs
        else:
            exec(compile(match[1], name, "exec"), namespace)
    print(f"{count} blocks of README run with ftrans {ftrans.__version__} in {sys.prefix}.")
    return 0


if __name__ == "__main__":
    sys.exit(run_tour() if sys.argv[1:] == ["tour"] else check(Path(sys.argv[1])))
