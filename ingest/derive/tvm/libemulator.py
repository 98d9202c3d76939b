"""Runs get-methods and emulates transactions with a user-supplied ``libemulator``.

Only in worker processes: the library may crash.

The C interface is ``emulator/emulator-extern.h`` of the node: bags are base64, results are JSON.
"""

import base64
import ctypes
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    NotAccepted,
    Outcome,
    StackLimits,
    build_previous,
)
from tonlake.ingest.derive.tvm.machine.vmstack import read_stack, write_stack, write_value

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
    "tvm_emulator_create": (_HANDLE, (_TEXT, _TEXT, ctypes.c_int)),
    "tvm_emulator_destroy": (None, (_HANDLE,)),
    "tvm_emulator_set_c7": (
        _FLAG,
        (_HANDLE, _TEXT, ctypes.c_uint32, ctypes.c_uint64, _TEXT, _TEXT),
    ),
    "tvm_emulator_set_libraries": (_FLAG, (_HANDLE, _TEXT)),
    "tvm_emulator_set_gas_limit": (_FLAG, (_HANDLE, ctypes.c_int64)),
    "tvm_emulator_set_prev_blocks_info": (_FLAG, (_HANDLE, _TEXT)),
    "tvm_emulator_set_config_object": (_FLAG, (_HANDLE, _HANDLE)),
    "emulator_set_verbosity_level": (_FLAG, (ctypes.c_int,)),
    "tvm_emulator_run_get_method": (_HANDLE, (_HANDLE, ctypes.c_int, _TEXT)),
}
_METHOD_LIMIT = 1 << 31
_CONFIGS_KEPT = 8
_NO_DATA = serialize_single(bytes(2))
_FREE = ("string_destroy", "free")
"""Functions that free a result: the library's own if it has one, else that of the C library."""


A = TypeVar("A")


class LibraryFault(ValueError):
    """The library rejects the input."""


class _Emulation(msgspec.Struct, frozen=True):
    """The JSON result of an emulation."""

    success: bool
    error: str = ""
    transaction: str = ""
    shard_account: str = ""
    external_not_accepted: bool = False
    vm_exit_code: int | None = None


class _Ended(msgspec.Struct, frozen=True):
    """The JSON result of a get-method."""

    success: bool
    error: str = ""
    vm_exit_code: int = 0
    gas_used: str = "0"
    stack: str = ""


class LibraryEmulator:
    """The emulator of a shared library."""

    def __init__(self, path: str, limits: StackLimits) -> None:
        """Load the library, whose stacks are held to ``limits``; raise OSError if it is none."""
        self._limits = limits
        self._configs: dict[bytes, int] = {}
        self._library = ctypes.CDLL(path)
        try:
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except AttributeError as error:
            raise OSError(f"{path} is not a libemulator: {error}") from error
        self._free = self._find_free()
        self._library.emulator_set_verbosity_level(0)

    def run_call(self, call: GetMethodCall) -> Outcome:
        """Run a get-method; the library composes c7 itself, from the facts in the call's.

        Raises LibraryFault: it rejects the input; TvmStackDeep, TvmStackLarge.
        """
        *stack, method = call.stack
        if not -_METHOD_LIMIT <= method < _METHOD_LIMIT:
            raise LibraryFault(f"the library does not accept the method id {method}")
        library = self._library
        data = _NO_DATA if call.data is None else call.data
        handle = library.tvm_emulator_create(_write(call.code), _write(data), 0)
        if not handle:
            raise LibraryFault("the library rejects the code or the data")
        try:
            self._prepare_run(handle, call)
            place = library.tvm_emulator_run_get_method(handle, method, _write(write_stack(stack)))
            ended = self._decode(place, _Ended)
        finally:
            library.tvm_emulator_destroy(handle)
        if not ended.success:
            raise LibraryFault(ended.error)
        left = read_stack(base64.b64decode(ended.stack), self._limits)
        return Outcome(ended.vm_exit_code, int(ended.gas_used), left)

    def _prepare_run(self, handle: int, call: GetMethodCall) -> None:
        """Set the context of a get-method.

        The configuration is unpacked once, since that takes longer than most get-methods. A lake
        that begins after the last key block has only its version, which the library does not
        unpack in advance.
        """
        facts = call.context
        seed = facts.seed.hex().encode()
        unpacked = self._find_config(facts.config)
        config = None if unpacked else _write(facts.config)
        address = f"{facts.workchain}:{facts.account.hex()}".encode()
        self._set(handle, "tvm_emulator_set_c7", address, facts.now, facts.balance, seed, config)
        if unpacked:
            self._set(handle, "tvm_emulator_set_config_object", unpacked)
        self._set(handle, "tvm_emulator_set_gas_limit", call.gas_limit)
        if call.libraries is not None:
            self._set(handle, "tvm_emulator_set_libraries", _write(call.libraries))
        if facts.previous is not None:
            previous = write_value(build_previous(facts.previous, facts.version))
            self._set(handle, "tvm_emulator_set_prev_blocks_info", _write(previous))
        if facts.currencies:
            amounts = " ".join(f"{key}={amount}" for key, amount in facts.currencies.items())
            self._set(handle, "tvm_emulator_set_extra_currencies", amounts.encode())

    def _set(self, handle: int, name: str, *values: object) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise LibraryFault(f"the library is too old: it has no {name}")
        if not function(handle, *values):
            raise LibraryFault(f"the library rejects {name.partition('_set_')[2]}")

    def _find_config(self, config: bytes) -> int:
        """Return the handle of an unpacked configuration; 0 if the library does not unpack it."""
        found = self._configs.get(config)
        if found is None:
            if len(self._configs) >= _CONFIGS_KEPT:
                for handle in filter(None, self._configs.values()):
                    self._library.emulator_config_destroy(handle)
                self._configs.clear()
            found = self._library.emulator_config_create(_write(config)) or 0
            self._configs[config] = found
        return found

    def run_emulation(self, call: EmulationCall) -> Emulated | NotAccepted:
        """Emulate a transaction; raise LibraryFault if the library rejects the input."""
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
            settings["prev_blocks_info"] = _write(write_value(call.previous))
        for name, value in settings.items():
            self._set(handle, f"transaction_emulator_set_{name}", value)

    def _decode(self, place: int, kind: type[A]) -> A:
        """Read a result and free it."""
        try:
            return msgspec.json.decode(ctypes.string_at(place), type=kind)
        except msgspec.DecodeError as error:
            raise LibraryFault(f"the library returned an invalid result: {error}") from error
        finally:
            self._free(place)

    def _read(self, place: int) -> Emulated | NotAccepted:
        """Return the result of an emulation."""
        answer = self._decode(place, _Emulation)
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
