"""The client side of the control routes: the handle, and its way to an emulator over HTTP.

Law: it knows the control routes and their shapes, and reaches into no emulator.
"""

from emulator.client.handle import AsyncHandle, Handle
from emulator.client.http import AsyncEmulatorClient, EmulatorClient
from emulator.client.requests import ControlError, Requests
from emulator.client.transcript import Transcript

__all__ = ["AsyncEmulatorClient", "AsyncHandle", "ControlError", "EmulatorClient", "Handle", "Requests", "Transcript"]
