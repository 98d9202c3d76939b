"""Runs the TVM and the emulator of tonpy (Apache-2.0); only in worker processes.

It uses tonpy's native module directly: tonpy's Python layer drops the sign of the exit code, and
builds c7 incorrectly.
"""

import base64
import re
from functools import lru_cache
from typing import Any

from tonpy.libs import python_ton

from tonlake.ingest.derive.tvm.call import Emulated, EmulationCall, NotAccepted, StackValue

_KEPT_CELLS = 256

Native = Any
"""An object of the native module, which is untyped."""

FAULTS = (RuntimeError, ValueError, TypeError, python_ton.VmError)
"""Exceptions of the native module for invalid input; any other failure ends the process."""


def parse_cell(boc: bytes) -> Native:
    """Parse a bag with one root into a cell of the machine."""
    return python_ton.parse_string_to_cell(base64.b64encode(boc).decode("ascii"))


parse_kept_cell = lru_cache(_KEPT_CELLS)(parse_cell)
"""For cells that many calls share: codes, and above all the configuration."""


def enter_value(value: StackValue) -> Native:
    """Return PrevBlocksInfo as a stack entry: integers, nulls and tuples."""
    if value is None:
        return python_ton.PyStackEntry()
    if isinstance(value, int):
        return python_ton.PyStackEntry(big_int=str(value))
    return python_ton.make_tuple([enter_value(item) for item in value])


_KEPT_EMULATORS = 8
_EXIT_CODE = re.compile(r"terminating vm with exit code (-?\d+)")
_NOT_RUN = "inbound external message rejected"
"""Error of the emulator if an external message cannot run: no code, or no balance."""
_RULES = 1
"""Version of the transaction rules: those since 2020."""


def run_emulation(call: EmulationCall) -> Emulated | NotAccepted:
    """Emulate a transaction; raise one of FAULTS if the emulator rejects the input."""
    emulator = _prepare(call)
    account = parse_cell(call.account)
    moment = (str(call.now), str(call.lt), _RULES)
    if call.message is None:
        done = emulator.emulate_tick_tock_transaction(account, call.is_tock, *moment)
    else:
        message = parse_cell(call.message)
        try:
            done = emulator.emulate_transaction(account, message, *moment)
        except RuntimeError as error:
            if _NOT_RUN not in str(error):
                raise
            return NotAccepted(None)
    if not done:  # reading a transaction now would end the process
        codes = _EXIT_CODE.findall(emulator.vm_log)
        return NotAccepted(int(codes[-1]) if codes else None)
    return Emulated(_write(emulator.transaction_cell), _write(emulator.account_cell))


def _prepare(call: EmulationCall) -> Native:
    """Return an emulator without any state of earlier calls."""
    emulator = _make_emulator(call.config, call.libraries)
    emulator.set_rand_seed(call.rand_seed.hex().upper())
    emulator.set_ignore_chksig(call.ignore_chksig)
    emulator.set_prev_blocks_info(enter_value(call.previous))
    return emulator


@lru_cache(_KEPT_EMULATORS)
def _make_emulator(config: bytes, libraries: bytes | None) -> Native:
    """Return an emulator; the configuration is unpacked once, and libraries cannot be unset."""
    emulator = python_ton.PyEmulator(parse_kept_cell(config))
    if libraries is not None:
        emulator.set_libs(parse_kept_cell(libraries))
    return emulator


def _write(cell: Native) -> bytes:
    return base64.b64decode(cell.to_boc())
