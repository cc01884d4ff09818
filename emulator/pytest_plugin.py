"""The pytest plugin: the fixtures `gobare`, `gobare_session`, `gobare_env` and `mcp_server`.

Law: it is loaded in every run of whoever has it installed, so it imports nothing heavy until a
fixture is used. A script error fails the test it happened in, in its call phase, with the script's
own traceback.
"""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from emulator.client.served import ServedServer
    from emulator.embedded import Emulator
    from emulator.exploration.explorer import Explorer
    from emulator.runtime.fault import Fault
    from emulator.settings import Settings

_FIXTURES: Final = ("gobare", "gobare_session", "gobare_env", "mcp_server")
# How long a finished test waits for an agent that has not come to rest, before its verdict.
_LAST_SECONDS: Final = 1.0
# The emulators a test was given by its fixtures, each once.
_GIVEN: Final[pytest.StashKey[list[Emulator]]] = pytest.StashKey()
# Who runs a test again, while it does.
_EXPLORER: Final[pytest.StashKey[Explorer]] = pytest.StashKey()
# Whether setting a test up or calling it raised something: such a test gets no second failure.
_RAISED: Final = pytest.StashKey[bool]()
# Whether a test's verdict was asked for.
_JUDGED: Final = pytest.StashKey[bool]()
# What a test has been told of already: an error fails it once.
_TOLD: Final = pytest.StashKey[list[Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("gobare_scenario", "scenario file of every emulator, relative to the ini file", default="")
    parser.addoption(
        "--gobare-explore",
        metavar="MODE",
        action="append",
        default=[],
        help="run tests with gobare fixtures again, exploring: resume_everywhere, race, future_proof, or a variant",
    )
    parser.addini("gobare_strict", "whether what a test leaves over fails it", type="bool", default=False)
    parser.addoption("--gobare-html", metavar="DIR", help="write a page for each failed test with an emulator into DIR")
    parser.addoption("--gobare-html-all", action="store_true", help="with --gobare-html: for passed tests as well")
    parser.addini("gobare_settings", "settings of every emulator, one name=value a line", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "gobare(scenario=None, strict=False, **settings): the scenario and the settings of this test's gobare emulator",
    )
    if config.getini("gobare_settings") or config.getini("gobare_scenario"):
        _from_ini(config)
    if config.option.gobare_html:
        # Workers are told of the place by its name, wherever they run.
        config.option.gobare_html = str(config.invocation_params.dir / config.option.gobare_html)
    if config.getoption("gobare_explore"):
        _check_modes(config.getoption("gobare_explore"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    checked: set[str] = set()
    for item in items:
        used = set(_FIXTURES) & set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker("gobare") is None and not (used and config.getini("gobare_scenario")):
            continue
        try:
            _, scenario = _wanted(item)
            if scenario is not None and repr(scenario) not in checked:
                checked.add(repr(scenario))
                _check_scenario(scenario)
        except ValueError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from None


@pytest.fixture
def gobare(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """A fresh emulator on a port of its own, stopped when the test ends."""
    from emulator.embedded import Emulator

    settings, scenario = _wanted(request.node)
    with Emulator(settings=settings, scenario=scenario) as emulator:
        _give(emulator, request.node)
        yield emulator
        request.node.stash[_GIVEN].remove(emulator)
        _end(emulator, request.node)


@pytest.fixture(scope="session")
def _gobare_server() -> Iterator[Emulator]:
    from emulator.embedded import Emulator

    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def gobare_session(request: pytest.FixtureRequest, _gobare_server: Emulator) -> Iterator[Emulator]:
    """One emulator and one address for the whole run of this worker, reset before each test."""
    _gobare_server.begin_again(*_wanted(request.node))
    _give(_gobare_server, request.node)
    yield _gobare_server
    request.node.stash[_GIVEN].remove(_gobare_server)
    _end(_gobare_server, request.node)


@pytest.fixture
def gobare_env(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """The test's emulator, with GOBARE_API and GOBARE_TOKEN set to it."""
    emulator = _of_the_test(request)
    monkeypatch.setenv("GOBARE_API", emulator.url)
    monkeypatch.setenv("GOBARE_TOKEN", emulator.token)
    return emulator


@pytest.fixture
def mcp_server(request: pytest.FixtureRequest) -> ServedServer:
    """An MCP server named `served`, served by the test's emulator, with no tools until `offer`."""
    return _of_the_test(request).mcp.serve("served")


def _of_the_test(request: pytest.FixtureRequest) -> Emulator:
    """The emulator of a test, made now if it is not there yet."""
    name = "gobare_session" if "gobare_session" in request.fixturenames else "gobare"
    emulator: Emulator = request.getfixturevalue(name)
    return emulator


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not _may_explore(item):
        return None
    settings, _ = _wanted(item)
    if not settings.explore:
        return None
    from emulator.exploration.explorer import Explorer
    from emulator.loops import raise_in

    item.stash[_EXPLORER] = explorer = Explorer(item, settings, _sections, raise_in)
    try:
        explorer.run(nextitem)
    finally:
        del item.stash[_EXPLORER]
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    explorer = item.stash.get(_EXPLORER, None)
    if explorer is None:
        return (yield from _called(item))
    if explorer.exploring:
        return (yield from explorer.call(_emulators(item)))
    result = yield from _called(item)
    explorer.passed(_emulators(item))
    return result


def _called(item: pytest.Item) -> Generator[None, Any, Any]:
    """Around the call of a test: what its emulators have to complain of fails it."""
    __tracebackhide__ = True
    try:
        result = yield
    except BaseException:
        # A test that failed by itself still shows what its scripts raised.
        for emulator in _emulators(item):
            for failure in _untold(emulator, item):
                item.add_report_section("call", "gobare script", _text(failure))
        raise
    for emulator in _emulators(item):
        _check(emulator, item)
        if emulator.invariants:
            from emulator.exploration.invariants import Run, hold

            hold(emulator, Run(""))
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    if any(hasattr(report, "gobare_left") for report in reports):
        from emulator.pytest_report import summarise

        summarise(terminalreporter, reports)
    explored = [report for report in reports if hasattr(report, "gobare_explored")]
    if explored:
        terminalreporter.section("gobare exploration")
        for report in explored:
            terminalreporter.line(f"{report.nodeid}: {report.gobare_explored}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for emulator in _emulators(item):
            report.sections += _sections(emulator)
    if call.excinfo is not None and report.when != "teardown":
        item.stash[_RAISED] = True
    if report.when == "teardown" and item.stash.get(_JUDGED, False):
        from emulator.pytest_report import LEFT, left

        if lines := item.stash.get(LEFT, None):
            report.gobare_left = left(lines)  # type: ignore[attr-defined]
    return report


def _emulators(item: pytest.Item) -> list[Emulator]:
    """The emulators a test was given, by itself or by its fixtures."""
    return item.stash.get(_GIVEN, [])


def _give(emulator: Emulator, item: pytest.Item) -> None:
    """Take note of a test's emulator, and of what must hold of it."""
    item.stash.setdefault(_GIVEN, []).append(emulator)
    for mark in reversed(list(item.iter_markers("gobare"))):
        given = mark.kwargs.get("invariant", ())
        for invariant in given if isinstance(given, list | tuple) else (given,):
            emulator.invariant(invariant)


def _may_explore(item: pytest.Item) -> bool:
    """Whether it is worth looking whether a test is to be explored."""
    config = item.config
    if not set(_FIXTURES) & set(getattr(item, "fixturenames", ())):
        return False
    if config.getoption("setuponly", False) or config.getoption("setupplan", False):
        return False
    return (
        bool(config.getoption("gobare_explore"))
        or any("explore" in mark.kwargs for mark in item.iter_markers("gobare"))
        or any(line.partition("=")[0].strip() == "explore" for line in config.getini("gobare_settings"))
    )


def _check(emulator: Emulator, item: pytest.Item) -> None:
    """Raise what went wrong in a script as the test's own failure; each error once."""
    __tracebackhide__ = True
    from emulator.loops import EmulatorStuck

    told = item.stash.setdefault(_TOLD, [])
    explorer = item.stash.get(_EXPLORER, None)
    if explorer is not None and explorer.exploring:
        # An explored run is judged by whoever runs it, and what happens in it is news to the script.
        return
    try:
        if emulator.running:
            emulator.rest(_LAST_SECONDS)
    except EmulatorStuck as stuck:
        if emulator in told:
            return
        told.append(emulator)
        _fail(str(stuck))
    failures = _untold(emulator, item)
    for failure in failures[1:]:
        item.add_report_section("call", "gobare script", _text(failure))
    if failures:
        _raise(failures[0])


def _end(emulator: Emulator, item: pytest.Item) -> None:
    """Check an emulator once more, and judge what its test left over."""
    __tracebackhide__ = True
    explorer = item.stash.get(_EXPLORER, None)
    if explorer is not None and explorer.exploring:
        return
    from emulator.pytest_report import judge

    item.stash[_JUDGED] = True
    try:
        _check(emulator, item)
    except BaseException:
        # One that is stuck tells nothing more.
        with suppress(Exception):
            judge(emulator, item, failed=True)
        raise
    judge(emulator, item, failed=item.stash.get(_RAISED, False))


def _untold(emulator: Emulator, item: pytest.Item) -> list[str | Fault]:
    """What this test has not been told of yet: what the watchdog said, and the errors of scripts."""
    told = item.stash.setdefault(_TOLD, [])
    # The error of an agent that was interrupted says less than the watchdog did.
    faults = [fault for fault in emulator.script_errors if type(fault.error).__name__ != "AgentBlocked"]
    everything: list[str | Fault] = [*emulator.blocked, *faults]
    found = [entry for entry in everything if entry not in told]
    told += found
    missed = [entry for entry in emulator.failed_expectations if entry not in told]
    if missed:
        from emulator.pytest_report import expectations

        told += missed
        found.append(expectations(missed))
    return found


def _text(failure: str | Fault) -> str:
    if isinstance(failure, str):
        return failure
    return f"at {failure.where}\n{''.join(traceback.format_exception(failure.error))}"


def _raise(failure: str | Fault) -> NoReturn:
    """Raise the error of a script, with the script's own frames as its traceback."""
    __tracebackhide__ = True
    from emulator.runtime.player import ScenarioStepError

    if isinstance(failure, str):
        _fail(failure)
    error = failure.error
    if isinstance(error, ScenarioStepError):
        _fail(f"the scenario failed at {failure.where}: {error}")
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | pytest.exit.Exception):
        # These would end the whole run, which was not the script's to end.
        raise RuntimeError(f"the script raised {failure.message}") from error
    raise error.with_traceback(_own_frames(error.__traceback__))


def _fail(text: str) -> NoReturn:
    """Fail with a text alone. Not hidden: pytest remarks on a traceback that is hidden altogether."""
    pytest.fail(text, pytrace=False)


def _own_frames(found: TracebackType | None) -> TracebackType | None:
    """A traceback without the emulator's frames; as it is, if it has no others."""
    here = str(Path(__file__).parent)
    frames: list[TracebackType] = []
    entry = found
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith(here):
            frames.append(entry)
        entry = entry.tb_next
    kept: TracebackType | None = None
    for entry in reversed(frames):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept or found


def _sections(emulator: Emulator) -> list[tuple[str, str]]:
    """What happened, for the report of a failed test."""
    from emulator.pytest_report import sections

    return sections(emulator)


def _check_modes(explore: list[str]) -> None:
    from emulator.settings import SettingError, Settings, changed

    try:
        changed(Settings(), {"explore": explore})
    except SettingError as error:
        raise pytest.UsageError(f"--gobare-explore: {error}") from None


def _check_scenario(scenario: str | Path | Mapping[str, Any]) -> None:
    """Raise `ScenarioError`, a `ValueError`, for a scenario that is not accepted."""
    from emulator.recording import load

    load(scenario)


def _wanted(item: Any) -> tuple[Settings, str | Path | Mapping[str, Any] | None]:
    """The settings and the scenario of a test: the ini file's, then its markers', the nearest last.

    Raises `ValueError` for a name that is no setting, a value it does not take, a missing file.
    """
    from emulator.settings import changed

    settings, scenario = _from_ini(item.config)
    explorer = item.stash.get(_EXPLORER, None)
    for mark in reversed(list(item.iter_markers("gobare"))):
        if mark.args:
            raise ValueError("the gobare marker takes names: scenario=… and settings")
        values = dict(mark.kwargs)
        if "scenario" in values:
            scenario = values.pop("scenario")
            if isinstance(scenario, str | Path):
                scenario = _find(Path(scenario), Path(item.path).parent, item.config.rootpath)
        values.pop("invariant", None)
        if isinstance(values.get("explore"), str):
            values["explore"] = [values["explore"]]
        settings = changed(settings, values)
    if explorer is not None or item.config.getoption("gobare_explore"):
        now = item.config.getoption("gobare_explore") if explorer is None else explorer.now
        settings = changed(settings, {"explore": now})
    return settings, scenario


def _from_ini(config: pytest.Config) -> tuple[Settings, str | Path | Mapping[str, Any] | None]:
    from emulator.settings import SettingError, Settings, from_texts

    texts: dict[str, str] = {"strict": "true"} if config.getini("gobare_strict") else {}
    for line in config.getini("gobare_settings"):
        name, equals, text = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"gobare_settings: {line!r} is not of the form name=value")
        texts[name.strip()] = text.strip()
    try:
        settings = from_texts(Settings(), texts)
    except SettingError as error:
        raise pytest.UsageError(f"gobare_settings: {error}") from None
    named = config.getini("gobare_scenario")
    if not named:
        return settings, None
    base = config.inipath.parent if config.inipath is not None else config.rootpath
    try:
        return settings, _find(Path(named), base)
    except ValueError as error:
        raise pytest.UsageError(f"gobare_scenario: {error}") from None


def _find(path: Path, *folders: Path) -> Path:
    for folder in folders:
        if (folder / path).is_file():
            return folder / path
    raise ValueError(f"there is no scenario file {path} in {', '.join(str(folder) for folder in folders)}")
