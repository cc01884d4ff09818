"""What tests see of the machine they run on: nothing that could change an outcome.

Law: a variable is kept only where programs cannot be found, or cannot keep their files, without it. So neither
a CI service, a terminal, a proxy, a time zone nor options of pytest's are there for a test, nor for what it starts.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_KEPT: Final = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "USERPROFILE", "SYSTEMROOT", "COMSPEC", "PATHEXT"),
        *("TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX"),
        *("PYTEST_DEBUG_TEMPROOT", "PYTEST_VERSION", "HYPOTHESIS_STORAGE_DIRECTORY"),
    )
)
_KEPT_GROUPS: Final = ("COV_CORE_", "COVERAGE_")
# Else it is the terminal's, where there is one.
_SET: Final = {"COLUMNS": "80", "LINES": "24"}


def clean(variables: Mapping[str, str]) -> dict[str, str]:
    """Of a machine's variables those that tests see."""
    kept = {name: text for name, text in variables.items() if name.upper() in _KEPT or name.startswith(_KEPT_GROUPS)}
    return kept | _SET


def keep_bytecode() -> Callable[[], None]:
    """Where the machine has nothing kept that was compiled, keep it in a folder of this run's: whatever it starts
    would compile everything anew, which takes seconds each time. Gives what takes the folder away."""
    if not sys.dont_write_bytecode:
        return lambda: None
    folder = TemporaryDirectory(prefix="gobare-emulator-")
    sys.dont_write_bytecode, sys.pycache_prefix = False, folder.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder.name
    return folder.cleanup


@contextmanager
def forgotten(more: Mapping[str, str]) -> Iterator[None]:
    """Have this process, and what it starts, without the variables of the machine, and with `more`."""
    before = dict(os.environ)
    _become({**clean(before), **more})
    try:
        yield
    finally:
        _become(before)


def _become(variables: Mapping[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)
