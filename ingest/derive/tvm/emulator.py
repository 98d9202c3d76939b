"""The emulator of tonpy, by its native module; imported in worker processes alone."""

from __future__ import annotations

import base64
import re
from functools import lru_cache

from tonpy.libs import python_ton

from tonlake.ingest.derive.tvm.emulation import Emulated, EmulationCall, NotAccepted
from tonlake.ingest.derive.tvm.engine import Native, enter_value, parse_cell, parse_kept_cell

_KEPT_EMULATORS = 8
_EXIT_CODE = re.compile(r"terminating vm with exit code (-?\d+)")
_NOT_RUN = "inbound external message rejected"
"""What the emulator says where there is no code, or no money, to run a message from outside."""
_RULES = 1
"""Version of the rules of transactions: those since 2020."""


def run_emulation(call: EmulationCall) -> Emulated | NotAccepted:
    """Make a transaction.

    Raises:
        FAULTS: the emulator refuses the input (module ``engine``).
    """
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
    if not done:  # to read a transaction now would end the process
        codes = _EXIT_CODE.findall(emulator.vm_log)
        return NotAccepted(int(codes[-1]) if codes else None)
    return Emulated(_write(emulator.transaction_cell), _write(emulator.account_cell))


def _prepare(call: EmulationCall) -> Native:
    """Return an emulator in which nothing of earlier calls is left."""
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
