"""Where the program `stackline` is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List

from ._errors import ProgramMissing

_NAME = "stackline"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def find() -> str:
    """The path of the program: STACKLINE names it, else it is beside this package, else in PATH."""
    named = os.environ.get("STACKLINE")
    if named:
        if _is_program(Path(named)):
            return os.path.abspath(named)
        raise ProgramMissing(
            f"STACKLINE names {named}, which is not a program",
            "set it to the path of the program `stackline`, or unset it",
        )
    for path in _beside():
        if _is_program(path):
            return str(path)
    import shutil

    found = shutil.which(_NAME)
    if found:
        return os.path.abspath(found)
    beside = ", ".join(str(path.parent) for path in _beside())
    raise ProgramMissing(
        f"the program `{_NAME}` was not found: it is neither in {beside} nor in PATH, and STACKLINE is not set",
        "install a wheel that has it (packaging/README.md), or set STACKLINE to its path",
    )


def _beside() -> List[Path]:
    """Where `pip install` puts the program of the wheel that this package came in."""
    import sysconfig

    site = Path(__file__).resolve().parent.parent
    # With `pip install --target DIR` the scripts are in DIR/bin.
    places = [site / "bin", Path(sysconfig.get_path("scripts"))]
    if "posix_user" in sysconfig.get_scheme_names():
        places.append(Path(sysconfig.get_path("scripts", "posix_user")))
    unique = list(dict.fromkeys(places))
    return [place / _NAME for place in unique]
