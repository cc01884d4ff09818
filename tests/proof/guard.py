"""The guard: no test reaches beyond this machine, and no emulator starts a process that no setting allows.

It stands in every process of the suite and in every Python process that tests start (`child/sitecustomize.py`).
What it sees is stopped before it happens, and fails the test it happened in.

Law: it knows nothing but the standard library, so that a process which starts with it is what it would be without.
What goes through Python is seen by an audit hook; uvloop tells such hooks nothing, so the guard stands before the
methods of its loops as well.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

# Where children write what they were kept from.
VARIABLE: Final = "EMULATOR_TESTS_GUARD"
_STARTS: Final = frozenset(
    (
        *("subprocess.Popen", "os.system", "os.startfile", "pty.spawn"),
        *("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn"),
    )
)
_RESOLVES: Final = frozenset(("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"))
_SENDS: Final = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))
# What the guard stands before as soon as it is there.
_MODULES: Final = ("uvloop", "emulator.runtime.deployment")
# A test that is run by them is on the stack above them.
_RUNNERS: Final = ("emulator.pytest_plugin", "emulator.exploration.")


class Forbidden(PermissionError):
    """What was kept from happening."""


class Guard:
    """Stands in this process for good once installed. What it stops is told to `tell`, with its stack."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._to_come = set(_MODULES)
        # The deployments of emulators that may start processes are among these.
        self._deployments: set[Any] = set()

    def install(self) -> None:
        """Begin to watch."""
        for module in _MODULES:
            if module in sys.modules:
                self._stand(module)
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "import":
            if args[0] in self._to_come:
                self._stand(args[0])
        elif event in _SENDS:
            if args[0].family in (socket.AF_INET, socket.AF_INET6):
                self.reach(args[1])
        elif event in _RESOLVES:
            self.resolve(args[0])
        elif event in _STARTS:
            self.start(args[0] if args else event)

    def reach(self, address: Any) -> None:
        """Raise `Forbidden` for an address that is not of this machine."""
        if address is not None and not _here(address[0]):
            self._stop(f"a connection to {address[0]}")

    def resolve(self, name: Any) -> None:
        """Raise `Forbidden` for a name that would have to be asked for. An address need not be.

        Of names below `invalid` it is known that there are none, which needs no asking: `gaierror` says so.
        """
        text = _text(name or "")
        if not text or _here(text) or _is_address(text) or not _is_name(text):
            return
        if text.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self._stop(f"a look-up of {text}")

    def start(self, what: Any) -> None:
        """Raise `Forbidden` where it is an emulator that starts a process, and none may."""
        if _by_an_emulator(sys._getframe()) and not any(
            deployment.world.settings.allow_processes for deployment in self._deployments
        ):
            self._stop(f"a start of {_text(what)}")

    def _stop(self, what: str) -> None:
        import traceback

        self._tell(f"{what}\n{''.join(traceback.format_stack(sys._getframe(2)))}")
        raise Forbidden(f"the guard of the tests does not allow {what}")

    def _stand(self, name: str) -> None:
        self._to_come.discard(name)
        try:
            module = import_module(name)
        except ImportError:
            # Whoever wants it finds out.
            return
        if name == "uvloop":
            self._before_loop(module.Loop)
        else:
            _before(module.Deployment, "__init__", lambda made, *_, **__: self._deployments.add(made))
            _before(module.Deployment, "close", self._deployments.discard)

    def _before_loop(self, loop: type) -> None:
        def connect(_: Any, __: Any, host: Any = None, port: Any = None, **___: Any) -> None:
            self.resolve(host)
            if host and _is_address(host):
                self.reach((host, port))

        def datagrams(_: Any, __: Any, local_addr: Any = None, remote_addr: Any = None, **___: Any) -> None:
            if remote_addr is None:
                self._stop("datagrams to anywhere")
            connect(_, __, *remote_addr[:2])

        _before(loop, "create_connection", connect)
        _before(loop, "create_datagram_endpoint", datagrams)
        _before(loop, "sock_connect", lambda _, sock, address: self._audit("socket.connect", (sock, address)))
        _before(loop, "sock_sendto", lambda _, sock, data, address: self._audit("socket.sendto", (sock, address)))
        _before(loop, "getaddrinfo", lambda _, host, *__, **___: self.resolve(host))
        _before(loop, "getnameinfo", lambda _, address, *__: self.reach(address))
        for name in ("subprocess_exec", "subprocess_shell"):
            _before(loop, name, lambda _, __, program, *___, **____: self.start(program))


def _before(owner: type, name: str, check: Callable[..., object]) -> None:
    """Have something looked at first whenever a method is called."""
    method = getattr(owner, name)

    @wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        check(*args, **options)
        return method(*args, **options)

    setattr(owner, name, checked)


def _by_an_emulator(frame: FrameType | None) -> bool:
    """Whether an emulator is on the stack, or nobody: then it is a thread that works for its loop.

    The one thing it may not help: an HTTP library imports trio where that is installed, and trio has the standard
    library ask `ldconfig` where the C library is.
    """
    tests = False
    while frame is not None:
        name: str = "" if frame.f_globals is globals() else frame.f_globals.get("__name__", "")
        if name == "ctypes.util":
            return False
        if name.partition(".")[0] == "emulator" and not name.startswith(_RUNNERS):
            return True
        tests = tests or name == "__main__" or name.partition(".")[0] in ("_pytest", "tests", "execnet")
        frame = frame.f_back
    return not tests


def _here(host: Any) -> bool:
    text = _text(host)
    return text in ("localhost", "::1") or (text.removeprefix("::ffff:").startswith("127.") and _is_address(text))


def _is_address(host: Any) -> bool:
    text = _text(host)
    return ":" in text or text.replace(".", "").isdigit()


def _is_name(text: str) -> bool:
    try:
        return bool(text.encode("idna"))
    except UnicodeError:
        return False


def _text(thing: Any) -> str:
    return os.fsdecode(thing) if isinstance(thing, bytes | os.PathLike) else str(thing)
