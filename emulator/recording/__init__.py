"""Recording and playback: a session of a client with the API, kept in a file and played again.

`load` is what loads a scenario wherever one is named: a file of either kind, or its content.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from emulator.scenario_source import Problem, ScenarioError, read

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from emulator.runtime.scenario_file import LoadedScenario

MODES: Final = ("script", "strict")


def is_recording(document: Mapping[str, Any]) -> bool:
    """Whether a document is a recording rather than a scenario."""
    return "recording" in document


def load(source: str | os.PathLike[str] | Mapping[str, Any], mode: str | None = None) -> LoadedScenario:
    """A scenario, or a recording as the scenario it is played as.

    With the mode `script` only the agent's side of a recording is played; with `strict` the client's writes
    are held against the recorded ones too; without one the setting `mode` decides. Raises `ScenarioError`.
    """
    from emulator.runtime import scenario_file

    origin, document = read(source)
    if not is_recording(document):
        if mode is not None:
            raise ScenarioError(origin, [Problem((), f"is no recording, so it is not played in the mode {mode!r}")])
        return scenario_file.load(source)
    from emulator.recording.document import recording_of
    from emulator.recording.steps import scenario_of
    from emulator.recording.strict import Strict

    recording = recording_of(document, origin)
    mode = mode or recording.header.get("mode")
    if mode not in (None, *MODES):
        text = f"is {mode!r}; a recording is played in the mode {' or '.join(MODES)}"
        raise ScenarioError(origin, [Problem(("mode",), text)])
    loaded = scenario_file.load(scenario_of(recording, Path(origin).stem if origin else "recording"))
    loaded.mode, loaded.check = mode, lambda: Strict(recording, Path(origin).name if origin else "the recording")
    return loaded
