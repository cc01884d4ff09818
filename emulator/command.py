"""Commands: what every command of the command line has in common.

Law: what is wrong with a command is one line on stderr and exit status 2, and no line ever repeats a token.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import signal
from typing import Final, NoReturn, TextIO

from emulator.redaction import scrub
from emulator.refusals import did_you_mean

PROGRAM: Final = "gobare-emulator"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Wrong(Exception):
    """A command that is not carried out, in one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line without the values that were given."""

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        """The options. Raises `Wrong` for an argument that does not exist."""
        options, unknown = self.parse_known_args(arguments)
        if not unknown:
            return options
        flag = next((text for text in unknown if text.startswith("-")), None)
        if flag is None:
            raise Wrong(f"`{self.prog}` takes no further arguments. More with --help.")
        flag = flag.partition("=")[0] if flag.startswith("--") else flag[:2]
        known = [option for action in self._actions for option in action.option_strings]
        raise Wrong(f"`{self.prog}` has no {scrub(flag)}.{did_you_mean(flag, known)} More with --help.")

    def error(self, message: str) -> NoReturn:
        raise Wrong(f"{scrub(message)}. More with `{self.prog} --help`.")


def write(stream: TextIO | None, text: str) -> None:
    """Write all of it now. A process that was started without the stream writes nothing."""
    if stream is not None:
        stream.write(text)
        stream.flush()


def stop_on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Have `stop` set by the signals that end a command."""
    for number in SIGNALS:
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:
            # Windows: its event loops leave signals to the interpreter.
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))


def not_bound(host: str, port: int, error: OSError | UnicodeError) -> str:
    """Why nothing can listen there, in a line."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return f"port {port} of {host} is in use. Choose another, or --port 0 for any that is free."
    if number in (errno.EACCES, errno.EPERM):
        return f"port {port} may not be used without more rights. Choose one above 1023."
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a host name"
    return f"cannot listen on {host!r}: {reason}."


def port_number(text: str | None, default: int) -> int:
    """A port as it was given. Raises `Wrong`."""
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535:
        return int(text)
    raise Wrong(f"`port` is a number from 0 to 65535, not {text!r}.")
