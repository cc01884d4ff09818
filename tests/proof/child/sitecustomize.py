"""Has every Python process that tests start under the guard. It is found because tests have it in PYTHONPATH."""

from __future__ import annotations

import os
import sys

if os.environ.get("EMULATOR_TESTS_GUARD"):
    from importlib.util import module_from_spec, spec_from_file_location

    _spec = spec_from_file_location("emulator_tests_guard", __file__.replace("child/sitecustomize.py", "guard.py"))
    assert _spec is not None
    assert _spec.loader is not None
    _guard = module_from_spec(_spec)
    _spec.loader.exec_module(_guard)

    def _tell(what: str) -> None:
        # Opened like this, since pathlib takes time to import.
        with open(os.environ[_guard.VARIABLE], "a", encoding="utf-8") as told:  # noqa: PTH123
            told.write(f"{' '.join(sys.argv)}: {what}\n")

    _guard.Guard(_tell).install()
