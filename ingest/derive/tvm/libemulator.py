"""Emulates transactions with a user-supplied ``libemulator``; only in worker processes.

The C interface is ``emulator/emulator-extern.h`` of the node: bags are base64, results are JSON.
"""

from __future__ import annotations

import base64
import ctypes
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.derive.tvm.call import Emulated, EmulationCall, NotAccepted
from tonlake.ingest.derive.tvm.stack import serialize_value

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT, _HANDLE, _FLAG = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_bool
_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "emulator_config_create": (_HANDLE, (_TEXT,)),
    "emulator_config_destroy": (None, (_HANDLE,)),
    "transaction_emulator_create": (_HANDLE, (_TEXT, ctypes.c_int)),
    "transaction_emulator_destroy": (None, (_HANDLE,)),
    "transaction_emulator_set_unixtime": (_FLAG, (_HANDLE, ctypes.c_uint32)),
    "transaction_emulator_set_lt": (_FLAG, (_HANDLE, ctypes.c_uint64)),
    "transaction_emulator_set_rand_seed": (_FLAG, (_HANDLE, _TEXT)),
    "transaction_emulator_set_ignore_chksig": (_FLAG, (_HANDLE, _FLAG)),
    "transaction_emulator_set_libs": (_FLAG, (_HANDLE, _TEXT)),
    "transaction_emulator_set_prev_blocks_info": (_FLAG, (_HANDLE, _TEXT)),
    "transaction_emulator_emulate_transaction": (_HANDLE, (_HANDLE, _TEXT, _TEXT)),
    "transaction_emulator_emulate_tick_tock_transaction": (_HANDLE, (_HANDLE, _TEXT, _FLAG)),
}
_FREE = ("string_destroy", "free")
"""Functions that free a result: the library's own if it has one, else that of the C library."""


class LibraryFault(ValueError):
    """The library rejects the input."""


class _Answer(msgspec.Struct, frozen=True):
    """The JSON result of an emulation."""

    success: bool
    error: str = ""
    transaction: str = ""
    shard_account: str = ""
    external_not_accepted: bool = False
    vm_exit_code: int | None = None


class LibraryEmulator:
    """The emulator of a shared library."""

    def __init__(self, path: str) -> None:
        """Load the library.

        Raises:
            OSError: it cannot be loaded, or is not a libemulator.
        """
        self._library = ctypes.CDLL(path)
        try:
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except AttributeError as error:
            raise OSError(f"{path} is not a libemulator: {error}") from error
        self._free = self._find_free()

    def run_emulation(self, call: EmulationCall) -> Emulated | NotAccepted:
        """Emulate a transaction.

        Raises:
            LibraryFault: the library rejects the input.
        """
        library = self._library
        # log level 0: only the exit code
        handle = library.transaction_emulator_create(_write(call.config), 0)
        if not handle:
            raise LibraryFault("the library rejects the configuration")
        try:
            self._prepare(handle, call)
            account = _write(call.account)
            if call.message is None:
                emulate = library.transaction_emulator_emulate_tick_tock_transaction
                return self._read(emulate(handle, account, call.is_tock))
            emulate = library.transaction_emulator_emulate_transaction
            return self._read(emulate(handle, account, _write(call.message)))
        finally:
            library.transaction_emulator_destroy(handle)

    def _prepare(self, handle: int, call: EmulationCall) -> None:
        settings: dict[str, object] = {
            "unixtime": call.now,
            "lt": call.lt,
            "rand_seed": call.rand_seed.hex().upper().encode(),
            "ignore_chksig": call.ignore_chksig,
        }
        if call.libraries is not None:
            settings["libs"] = _write(call.libraries)
        if call.previous is not None:
            settings["prev_blocks_info"] = _write(serialize_value(call.previous))
        for name, value in settings.items():
            if not getattr(self._library, f"transaction_emulator_set_{name}")(handle, value):
                raise LibraryFault(f"the library rejects {name}")

    def _read(self, place: int) -> Emulated | NotAccepted:
        """Read a result and free it."""
        try:
            answer = msgspec.json.decode(ctypes.string_at(place), type=_Answer)
        except msgspec.DecodeError as error:
            raise LibraryFault(f"the library returned an invalid result: {error}") from error
        finally:
            self._free(place)
        if answer.success:
            made = (answer.transaction, answer.shard_account)
            return Emulated(*map(base64.b64decode, made))
        if answer.external_not_accepted:
            return NotAccepted(answer.vm_exit_code)
        raise LibraryFault(answer.error)

    def _find_free(self) -> Callable[[int], object]:
        for owner in (self._library, ctypes.CDLL(None)):
            for name in _FREE:
                if hasattr(owner, name):
                    free: Callable[[int], object] = getattr(owner, name)
                    free.argtypes = (_HANDLE,)  # type: ignore[attr-defined] # of ctypes
                    return free
        raise OSError("found no function that frees the results of the library")


def _write(boc: bytes) -> bytes:
    return base64.b64encode(boc)
