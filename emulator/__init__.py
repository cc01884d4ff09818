"""A local emulator and test double of the Gobare Agent API.

Importing this package is cheap: the server is imported when one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from emulator.client import AsyncEmulatorClient, ControlError, EmulatorClient
    from emulator.embedded import AsyncEmulator, Emulator
    from emulator.runtime.run import ScriptError, TurnOver
    from emulator.runtime.turn import Turn
    from emulator.scenario_source import ScenarioError
    from emulator.settings import SettingError

__version__: Final = "0.1.0"

__all__ = [
    "AsyncEmulator",
    "AsyncEmulatorClient",
    "ControlError",
    "Emulator",
    "EmulatorClient",
    "ScenarioError",
    "ScriptError",
    "SettingError",
    "Turn",
    "TurnOver",
    "__version__",
]

_HOMES: Final = {
    "AsyncEmulator": "emulator.embedded",
    "AsyncEmulatorClient": "emulator.client",
    "ControlError": "emulator.client",
    "Emulator": "emulator.embedded",
    "EmulatorClient": "emulator.client",
    "ScenarioError": "emulator.scenario_source",
    "ScriptError": "emulator.runtime.run",
    "SettingError": "emulator.settings",
    "Turn": "emulator.runtime.turn",
    "TurnOver": "emulator.runtime.run",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
