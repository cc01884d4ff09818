"""The commands about recordings: `record` makes one, `scenario` turns one into a scenario file.

Law: nothing that passes through is printed, only where secrets were found and under which name.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from emulator.command import PROGRAM, SIGNALS, Parser, Wrong, not_bound, port_number, stop_on_signals, write

if TYPE_CHECKING:
    from argparse import Namespace

    from emulator.recording.server import RecordingServer

PORT: Final = 4748
# Something looks like a secret and nobody has said whether it is one.
UNDECLARED: Final = 3


def record(parser: Parser, arguments: list[str]) -> int:
    """Record until a signal comes. Gives 3 when something suspected of being a secret is not declared."""
    parser.usage = "%(prog)s --upstream URL --out FILE [flags]"
    parser.epilog = (
        "Secrets are replaced by named placeholders. What only looks like one is named at the end, and the status is "
        f"{UNDECLARED}, until each name was given with --secret, or with --safe to be kept in clear."
    )
    parser.add_argument("--upstream", metavar="URL", required=True, help="the API, or another emulator")
    parser.add_argument(
        "--out", metavar="FILE", required=True, help="the recording, a .jsonl file; one there is replaced"
    )
    parser.add_argument("--host", metavar="HOST", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", metavar="N", help=f"port to listen on; 0 takes any that is free (default {PORT})")
    parser.add_argument(
        "--safe", metavar="NAME", action="append", default=[], help="no secret: keep it; * is any; repeat"
    )
    parser.add_argument(
        "--secret", metavar="NAME", action="append", default=[], help="a secret indeed; * is any; repeat"
    )
    parser.add_argument(
        "--free", metavar="PATH", action="append", default=[], help="a body field strict playback passes over; repeat"
    )
    parser.add_argument(
        "--match",
        metavar="order|labels",
        choices=("order", "labels"),
        help="how sessions are known when it is played: by the order of their creation (default), or by title and "
        "metadata, where these are a session's own",
    )
    options = parser.parse(arguments)
    _check(options)
    port = port_number(options.port, PORT)
    from emulator import server
    from emulator.recording.server import RecordingServer

    try:
        bound = server.bind(options.host, port)
    except (OSError, UnicodeError) as error:
        raise Wrong(not_bound(options.host, port, error)) from None
    try:
        recording = RecordingServer(
            bound,
            options.upstream,
            options.out,
            safe=options.safe,
            secret=options.secret,
            free=options.free,
            match=options.match,
        )
    except OSError as error:
        bound.close()
        raise Wrong(f"cannot write {options.out}: {error.strerror}.") from None
    _serve(recording, options)
    return _told(recording, options)


def _check(options: Namespace) -> None:
    try:
        parts = urlsplit(options.upstream)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
        usable = usable and not parts.query and not parts.fragment and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The address is not repeated: it may have a password in it.
        raise Wrong("`upstream` is an http or https address without user, query and fragment.")
    if not options.out.endswith(".jsonl"):
        raise Wrong("`out` is a file whose name ends in .jsonl, by which a recording is known.")
    both = sorted(set(options.safe) & set(options.secret))
    if both:
        raise Wrong(f"{both[0]} cannot be both --safe and --secret.")


def _serve(recording: RecordingServer, options: Namespace) -> None:
    from emulator import loops

    loop = loops.new_loop()
    handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    try:
        stop = asyncio.Event()
        stop_on_signals(loop, stop)
        loop.run_until_complete(_attend(recording, stop, options))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
        for number, handler in handlers:
            signal.signal(number, handler)


async def _attend(recording: RecordingServer, stop: asyncio.Event, options: Namespace) -> None:
    await recording.start()
    try:
        write(
            sys.stdout,
            f"Recording {options.upstream} on {recording.url} into {options.out}\n"
            f"export GOBARE_API={shlex.quote(recording.url)}\n"
            f"export GOBARE_TOKEN={shlex.quote('<your own token>')}\n",
        )
        await stop.wait()
    finally:
        await recording.stop()


def _told(recording: RecordingServer, options: Namespace) -> int:
    secrets = recording.secrets
    for name in secrets.unused():
        write(sys.stderr, f"{PROGRAM}: warning: nothing was found under the name {name}.\n")
    for what, why in recording.incomplete():
        write(sys.stderr, f"{PROGRAM}: warning: the recording lacks {what}: {why}.\n")
    if failed := recording.failed():
        why = f"{failed}. What came before can be played."
        write(sys.stderr, f"{PROGRAM}: {options.out} could not be written to its end: {why}\n")
    if not secrets.suspected:
        return 1 if failed else 0
    write(sys.stderr, f"{PROGRAM}: these look like secrets, and were replaced in {options.out}:\n")
    for name, place in secrets.suspected.items():
        write(sys.stderr, f"  {name}  ({place})\n")
    write(
        sys.stderr,
        "Record again with --secret NAME for each that is one, and with --safe NAME for each that is none and may be "
        "kept.\n",
    )
    return 1 if failed else UNDECLARED


def scenario(parser: Parser, arguments: list[str]) -> int:
    """Print a recording as a scenario file."""
    parser.add_argument("recording", metavar="RECORDING", help="a recording, a .jsonl file")
    file: str = parser.parse(arguments).recording
    from emulator.recording import is_recording
    from emulator.recording.document import recording_of
    from emulator.recording.steps import as_yaml, messages, scenario_of
    from emulator.runtime.scenario_file import load
    from emulator.scenario_source import ScenarioError, read

    try:
        origin, document = read(file)
        if not is_recording(document):
            raise Wrong(f"{file} is no recording.")
        recording = recording_of(document, origin)
        made = scenario_of(recording, Path(file).stem)
        load(made)
    except ScenarioError as error:
        raise Wrong(str(error.problems[0]) if error.source is None else f"{file}: {error.problems[0]}") from None
    write(sys.stdout, as_yaml(made, messages(recording)))
    return 0
