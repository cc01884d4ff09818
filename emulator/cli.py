"""The command line: serve, demo, record, scenario, check, schema and openapi.

Law: what is wrong with a command is one line on stderr and exit status 2, and no line ever repeats a
token. `serve` has a flag and a variable for every setting because both are made from the settings.
Each command imports what it needs when it runs, since how soon `serve` answers is a promise.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import shlex
import signal
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin, get_type_hints

from emulator import __version__
from emulator.command import PROGRAM, SIGNALS, Parser, Wrong, not_bound, port_number, stop_on_signals, write
from emulator.redaction import Secret, scrub
from emulator.refusals import did_you_mean
from emulator.settings import NAMES, PREFIX, SettingError, Settings, as_json, from_environment, from_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from emulator.runtime.scenario_file import LoadedScenario
    from emulator.server import Socket

PORT: Final = 4747
# What a service on somebody's machine wants, where a test wants the settings' own defaults.
SERVE_DEFAULTS: Final = Settings(pace="realistic", clock="real")
# `serve` takes these beside the settings, as flags and as variables.
_OTHERS: Final = ("host", "port", "scenario", "token", "control_token", "allow_host")
_STUCK: Final = 70


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and give its exit status: 0, 1 when what it checked does not hold, 2 when it was wrong."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except Wrong as wrong:
        write(sys.stderr, f"{PROGRAM}: {wrong}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The interpreter flushes once more at its end, which must not fail again.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        raise Wrong(f"say what to do: {', '.join(_COMMANDS)}. More with --help.")
    name, *rest = arguments
    if name in ("-h", "--help"):
        width = max(map(len, _COMMANDS))
        lines = [f"  {command.ljust(width)}  {summary}" for command, (_, summary) in _COMMANDS.items()]
        head = "A local emulator and test double of the Gobare Agent API.\n"
        tail = f"\n`{PROGRAM} COMMAND --help` tells more, `{PROGRAM} --version` the version.\n"
        write(sys.stdout, f"usage: {PROGRAM} COMMAND …\n\n{head}\n" + "\n".join(lines) + "\n" + tail)
        return 0
    if name == "--version":
        write(sys.stdout, f"{PROGRAM} {__version__}\n")
        return 0
    if name not in _COMMANDS:
        # The word is not repeated: after a slip on the keyboard it may be a token.
        raise Wrong(f"there is no such command.{did_you_mean(name, _COMMANDS)} There are {', '.join(_COMMANDS)}.")
    command, summary = _COMMANDS[name]
    return command(Parser(prog=f"{PROGRAM} {name}", description=summary, allow_abbrev=False), rest)


# serve


@dataclass(frozen=True, slots=True, kw_only=True)
class _Serve:
    """What `serve` was asked for, checked."""

    settings: Settings
    host: str
    port: int
    tokens: list[tuple[Secret, tuple[str, ...]]]
    control_token: Secret | None
    allow_hosts: list[str]
    scenario: LoadedScenario | None


def _serve(parser: Parser, arguments: list[str]) -> int:
    _add_serve_flags(parser)
    wanted = _serve_options(vars(parser.parse(arguments)), os.environ)
    # Looking for garbage in what is being imported costs a start a twelfth, and finds none.
    gc.disable()
    thresholds = gc.get_threshold()
    # A server makes much and leaves few cycles: looking for them as seldom as this costs it little memory.
    gc.set_threshold(10_000, *thresholds[1:])
    try:
        return _serve_until_stopped(wanted)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        gc.enable()


def _serve_until_stopped(wanted: _Serve) -> int:
    from emulator import loops, server
    from emulator.runtime.stepping import Holder

    try:
        bound = server.bind(wanted.host, wanted.port)
    except (OSError, UnicodeError) as error:
        raise Wrong(not_bound(wanted.host, wanted.port, error)) from None
    address = bound.getsockname()[0]
    if wanted.control_token is None and not _is_loopback(address):
        write(
            sys.stderr,
            f"{PROGRAM}: warning: it listens on {address}, beyond this machine, and without --control-token whoever "
            "reaches it may change its scenario, tokens and settings.\n",
        )
    holder = Holder()
    socket = server.Socket(
        bound,
        settings=wanted.settings,
        holder=holder,
        tokens=wanted.tokens,
        scenario=wanted.scenario,
        control_token=wanted.control_token,
        allow_hosts=wanted.allow_hosts,
    )
    watchdog = loops.Watchdog(holder, threading.get_ident(), _stuck)
    loop = loops.new_loop()
    handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    try:
        stop = asyncio.Event()
        stop_on_signals(loop, stop)
        task = loop.create_task(_attend(socket, stop, _greeting(socket.url, wanted.tokens)))
        while not task.done():
            # It may arrive just after the agent it was meant for had let go of the loop.
            with contextlib.suppress(loops.AgentBlocked):
                loop.run_until_complete(task)
        task.result()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        watchdog.stop()
        loop.close()
        for number, handler in handlers:
            signal.signal(number, handler)
    return 0


async def _attend(socket: Socket, stop: asyncio.Event, greeting: str) -> None:
    await socket.start()
    try:
        write(sys.stdout, greeting)
        gc.freeze()
        gc.enable()
        await stop.wait()
    finally:
        await socket.stop()


def _greeting(url: str, tokens: Sequence[tuple[Secret, Sequence[str]]]) -> str:
    from emulator.domain.access import DEFAULT_TOKEN

    default = not tokens or any(token == Secret(DEFAULT_TOKEN) for token, _ in tokens)
    token = DEFAULT_TOKEN if default else "<the token you gave it>"
    return (
        f"Gobare emulator {__version__} answers on {url}\n"
        f"export GOBARE_API={shlex.quote(url)}\n"
        f"export GOBARE_TOKEN={shlex.quote(token)}\n"
    )


def _stuck(stack: str) -> None:
    """Called by the watchdog: nothing on this loop can run again, so nothing can be stopped in order."""
    with contextlib.suppress(OSError):
        write(sys.stderr, f"{PROGRAM}: an agent holds the event loop and cannot be interrupted:\n{scrub(stack)}")
    os._exit(_STUCK)


def _is_loopback(address: str) -> bool:
    if address in ("127.0.0.1", "::1"):
        return True
    from ipaddress import ip_address

    return ip_address(address.partition("%")[0]).is_loopback


def _add_serve_flags(parser: Parser) -> None:
    parser.usage = "%(prog)s [flags]"
    parser.epilog = (
        f"Each of these is a variable as well, {PREFIX} and the name in capitals ({PREFIX}DISABLED_TOOLS); a flag "
        f"beats it. There, several tokens are separated by spaces, hosts by commas, scenario files by {os.pathsep!r}."
    )
    listen = parser.add_argument_group("where it listens, and to whom")
    listen.add_argument("--host", metavar="HOST", help="address to listen on (default 127.0.0.1)")
    listen.add_argument("--port", metavar="N", help=f"port to listen on; 0 takes any that is free (default {PORT})")
    listen.add_argument("--allow-host", metavar="HOST", action="append", help="a host name to be served under; repeat")
    listen.add_argument(
        "--token",
        metavar="TOKEN[:scope,scope]",
        action="append",
        help="an access token, and its scopes if not all but cli; repeat (default gbr_pat_emulator)",
    )
    listen.add_argument("--control-token", metavar="TOKEN", help="what /_emulator asks for (default: nothing)")
    plays = parser.add_argument_group("what it plays")
    files = "a scenario file, YAML or JSON, or a recording; repeat"
    plays.add_argument("--scenario", metavar="FILE", action="append", help=files)
    settings = parser.add_argument_group("settings")
    kinds, defaults = get_type_hints(Settings), as_json(SERVE_DEFAULTS)
    for definition in dataclasses.fields(Settings):
        kind, default = kinds[definition.name], defaults[definition.name]
        shown = default if isinstance(default, str) else json.dumps(default)
        text = f"{definition.metadata['doc']} (default {shown})".replace("%", "%%")
        flag = "--" + definition.name.replace("_", "-")
        # One that is either on or off is on where nothing is said.
        alone: dict[str, Any] = {"nargs": "?", "const": "true"} if kind is bool else {}
        settings.add_argument(flag, dest=definition.name, metavar=_placeholder(kind), help=text, **alone)


def _placeholder(kind: Any) -> str:
    if kind is bool:
        return "true|false"
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "A,B" if get_args(kind)[0] is str else "JSON"
    return "N"


def _serve_options(flags: Mapping[str, Any], environment: Mapping[str, str]) -> _Serve:
    """The flags, and behind them the variables. Raises `Wrong`."""
    try:
        variables = from_environment(environment, others=_OTHERS)
        texts = {name: variables[name] for name in NAMES if name in variables}
        texts |= {name: flags[name] for name in NAMES if flags[name] is not None}
        settings = from_texts(SERVE_DEFAULTS, texts)
    except SettingError as error:
        raise Wrong(str(error)) from None

    def several(name: str, split: Callable[[str], list[str]]) -> list[str]:
        if flags[name] is not None:
            return list(flags[name])
        return split(variables[name]) if name in variables else []

    def one(name: str) -> str | None:
        found = flags[name] if flags[name] is not None else variables.get(name)
        if found == "":
            raise Wrong(f"`{name}` is empty. Leave it out, or give it a value.")
        return found

    hosts = several("allow_host", lambda text: text.replace(",", " ").split())
    control_token = one("control_token")
    return _Serve(
        settings=settings,
        host=one("host") or "127.0.0.1",
        port=port_number(one("port"), PORT),
        tokens=[_token(n, text) for n, text in enumerate(several("token", str.split), start=1)],
        control_token=None if control_token is None else Secret(_visible("the control token", control_token)),
        allow_hosts=[_allowed_host(host) for host in hosts],
        scenario=_scenario(several("scenario", lambda text: text.split(os.pathsep))),
    )


def _token(n: int, text: str) -> tuple[Secret, tuple[str, ...]]:
    from emulator.domain.access import DEFAULT_SCOPES, SCOPES

    token, colon, listed = text.partition(":")
    secret = Secret(_visible(f"token {n}", token))
    if not colon:
        return secret, DEFAULT_SCOPES
    scopes = tuple(scope.strip() for scope in listed.split(","))
    for m, scope in enumerate(scopes, start=1):
        if scope not in SCOPES:
            # The word is not repeated: of a token that has a colon in it, it is a part.
            hint = did_you_mean(scope, SCOPES)
            raise Wrong(f"scope {m} of token {n} is not a scope.{hint} The scopes are {', '.join(SCOPES)}.")
    return secret, scopes


def _visible(what: str, text: str) -> str:
    if text and all("!" <= character <= "~" for character in text):
        return text
    raise Wrong(f"{what} is empty, or has characters that cannot be sent in a header.")


def _allowed_host(text: str) -> str:
    if text and not any(character in "/*[]@ " for character in text) and text.count(":") != 1:
        return text
    raise Wrong(f"`allow_host` is a host name or an address, without scheme, port or wildcard, not {scrub(text)!r}.")


def _scenario(files: Iterable[str]) -> LoadedScenario | None:
    files = list(files)
    if not files:
        return None
    from emulator.recording import load
    from emulator.runtime.scenario_file import ScenarioError, merge

    try:
        return merge([load(file) for file in files])
    except ScenarioError as error:
        first, *others = error.problems
        head = f"{error.source}: " if error.source else ""
        more = f" ({len(others)} more: see `{PROGRAM} check {shlex.quote(error.source or '')}`)" if others else ""
        raise Wrong(f"{head}{first}{more}") from None


# the other commands


def _demo(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("--seed", metavar="N", default="0", help="every id is derived from it (default 0)")
    parser.add_argument("--record", metavar="FILE", help="keep it as a recording, a .jsonl file")
    options = parser.parse(arguments)
    if options.record is not None and not options.record.endswith(".jsonl"):
        raise Wrong("`record` is a file whose name ends in .jsonl, by which a recording is known.")
    try:
        settings = from_texts(Settings(), {"seed": options.seed})
    except SettingError as error:
        raise Wrong(str(error)) from None
    from emulator.demo import demo

    return demo(settings, options.record)


def _check(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a scenario file, YAML or JSON, or a recording")
    files: list[str] = parser.parse(arguments).files
    from emulator.recording import load
    from emulator.scenario_source import ScenarioError

    bad = 0
    for file in files:
        try:
            load(file)
        except ScenarioError as error:
            bad += 1
            write(sys.stdout, f"{error}\n")
        else:
            write(sys.stdout, f"{file}: ok\n")
    return 1 if bad else 0


def _record(parser: Parser, arguments: list[str]) -> int:
    from emulator.record import record

    return record(parser, arguments)


def _scenario_of(parser: Parser, arguments: list[str]) -> int:
    from emulator.record import scenario

    return scenario(parser, arguments)


def _schema(parser: Parser, arguments: list[str]) -> int:
    parser.parse(arguments)
    from emulator.wire.scenario import scenario_schema

    write(sys.stdout, json.dumps(scenario_schema(), indent=2) + "\n")
    return 0


def _openapi(parser: Parser, arguments: list[str]) -> int:
    parser.parse(arguments)
    from emulator.api.openapi import document

    write(sys.stdout, json.dumps(document(), indent=2) + "\n")
    return 0


_COMMANDS: Final[Mapping[str, tuple[Callable[[Parser, list[str]], int], str]]] = {
    "serve": (_serve, "Serve the API until interrupted."),
    "demo": (_demo, "Start an emulator, walk through its main job over HTTP, and show what happened."),
    "record": (_record, "Record what passes between a client and the API, until interrupted."),
    "scenario": (_scenario_of, "Print a recording as a scenario file to be edited."),
    "check": (_check, "Check scenario files and recordings."),
    "schema": (_schema, "Print the JSON Schema of scenario files."),
    "openapi": (_openapi, "Print the OpenAPI document of the API."),
}
