"""Transactions of one block: each receives a message, changes an account and sends messages.

TL-B: transaction$0111, trans_ord$0000, tr_phase_storage$_, tr_phase_credit$_,
tr_phase_compute_vm$1, tr_phase_action$_, update_hashes#72, message$_, int_msg_info$0,
ext_in_msg_info$10. Gas and fees are plausible, signatures random.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.network.contract import ACTIVE, UNINIT, store_address
from tests.ingest.hashmaps import build_hashmap

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.bench.network.contract import Contract, Sheet
    from tonlake.ingest.decode.cell.build import CellBuilder

LT_STEP = 20
GAS_PRICE, GAS, GAS_SPREAD, GAS_LIMIT = 400, 3_000, 40, 1_000_000
STORAGE_FEE, FORWARD_FEE = 120, 266_669
FIRST_BALANCE = 10**12


class Out(NamedTuple):
    """A message to be sent: destination, amount, and the cell of its body."""

    to: Contract
    value: int
    body: int | None = None
    bounce: bool = True
    init: bool = False
    """Whether the first state of the account goes with it."""


class Sent(NamedTuple):
    """A message in transit."""

    cell: int
    value: int | None
    """None for one from outside."""


class Entry(NamedTuple):
    """A transaction of an account, and the resulting state."""

    lt: int
    cell: int
    fees: int
    old_hash: bytes
    new_hash: bytes


class Ledger:
    """Collects the transactions of a block by account."""

    def __init__(self, sheet: Sheet, start_lt: int, now: int, dice: random.Random) -> None:
        """Begin a block at a logical time and a second."""
        self.sheet, self.now, self.dice = sheet, now, dice
        self.lt = start_lt
        self.count = 0
        self.entries: dict[int, list[Entry]] = {}
        self.accounts: dict[int, Contract] = {}

    def call_outside(self, to: Contract, body: int) -> Sent:
        """Return an external message, with the initial state if the account does not exist yet."""
        builder = self.sheet.cell().store_uint(0b10_00, 4)
        store_address(builder, to.address).store_coins(0)
        init = None if to.status == ACTIVE else to.store_init(self.sheet)
        return Sent(self._end_message(builder, init, body), None)

    def write_message(self, source: int | None, out: Out, lt: int = 0) -> int:
        """Return the cell of a message; without a source, in the form a wallet expects."""
        builder = self.sheet.cell().store_uint(0b01, 2).store_bit(out.bounce).store_bit(0)
        builder = builder.store_uint(0, 2) if source is None else store_address(builder, source)
        store_address(builder, out.to.address).store_coins(out.value).store_bit(0)
        builder.store_coins(0).store_coins(0 if source is None else FORWARD_FEE)
        builder.store_uint(lt, 64).store_uint(self.now if lt else 0, 32)
        init = out.to.store_init(self.sheet) if out.init else None
        return self._end_message(builder, init, out.body)

    def _end_message(self, builder: CellBuilder, init: int | None, body: int | None) -> int:
        if init is None:
            builder.store_bit(0)
        else:
            builder.store_uint(0b11, 2).store_ref(init)
        if body is None:
            return builder.store_bit(0).end()
        return builder.store_bit(1).store_ref(body).end()

    def run(
        self,
        contract: Contract,
        came: Sent,
        outs: Sequence[Out] = (),
        *,
        deploys: bool = False,
    ) -> list[Sent]:
        """Let an account receive a message and send others; return them.

        The account's number is that after the transaction. ``deploys``: the message activated it.
        """
        self.lt += LT_STEP
        self.count += 1
        lt = self.lt
        sent = [
            Sent(self.write_message(contract.address, out, lt + at), out.value)
            for at, out in enumerate(outs, 1)
        ]
        gas = GAS * (1 + len(outs)) + self.dice.randrange(GAS_SPREAD)
        runs = deploys or contract.status == ACTIVE
        fees = gas * GAS_PRICE * runs + STORAGE_FEE
        before, status = contract.state_hash, contract.status
        contract.balance = self._weigh(contract, came, outs, fees)
        contract.status = ACTIVE if runs else UNINIT
        contract.end_lt = lt + len(outs) + 1
        state = contract.store_state(self.sheet, contract.address, self.now)
        contract.state_hash = self.sheet.tree.hash(state, 0)
        cell = self._write(contract, came, sent, (lt, fees, gas, status, runs, before))
        contract.last_lt, contract.last_hash = lt, self.sheet.tree.hash(cell)
        self.accounts[contract.address] = contract
        entry = Entry(lt, cell, fees, before, contract.state_hash)
        self.entries.setdefault(contract.address, []).append(entry)
        return sent

    def _weigh(self, contract: Contract, came: Sent, outs: Sequence[Out], fees: int) -> int:
        spent = sum(out.value + FORWARD_FEE for out in outs) + fees
        balance = contract.balance + (came.value or 0) - spent
        return balance if balance > 0 else FIRST_BALANCE

    def _write(
        self,
        contract: Contract,
        came: Sent,
        sent: Sequence[Sent],
        facts: tuple[int, int, int, int, bool, bytes],
    ) -> int:
        lt, fees, gas, status, runs, before = facts
        cell = self.sheet.cell
        fill = {at: partial(_store_message, one) for at, one in enumerate(sent)}
        messages = cell().store_bit(1).store_ref(came.cell)
        messages.store_maybe_ref(build_hashmap(self.sheet.tree, fill, 15) if sent else None)
        update = cell().store_uint(0x72, 8).store_bytes(before).store_bytes(contract.state_hash)
        builder = cell().store_uint(0b0111, 4).store_uint(contract.address, 256)
        builder.store_uint(lt, 64).store_bytes(contract.last_hash).store_uint(contract.last_lt, 64)
        builder.store_uint(self.now, 32).store_uint(len(sent), 15)
        builder.store_uint(status, 2).store_uint(contract.status, 2)
        builder.store_ref(messages.end()).store_coins(fees).store_bit(0)
        description = self._describe(came, sent, gas, runs=runs, activated=status != ACTIVE)
        return builder.store_ref(update.end()).store_ref(description).end()

    def _describe(
        self, came: Sent, sent: Sequence[Sent], gas: int, *, runs: bool, activated: bool
    ) -> int:
        """Return the cell of trans_ord."""
        builder = self.sheet.cell().store_uint(0, 4).store_bit(came.value is None)
        builder.store_bit(1).store_coins(STORAGE_FEE).store_uint(0, 2)
        if came.value is None:
            builder.store_bit(0)
        else:
            builder.store_uint(0b10, 2).store_coins(came.value).store_bit(0)
        if not runs:  # tr_phase_compute_skipped$0, cskip_no_state$00
            return builder.store_uint(0b000, 3).store_uint(0b0_1_0_0, 4).end()
        builder.store_uint(0b11, 2).store_bit(activated).store_bit(activated)
        builder.store_coins(gas * GAS_PRICE).store_ref(self._write_gas(came, gas))
        builder.store_bit(1).store_ref(self._write_actions(sent))
        return builder.store_uint(0b000, 3).end()

    def _write_gas(self, came: Sent, gas: int) -> int:
        builder = self.sheet.cell().store_var_uint(gas, 3)
        limit = 0 if came.value is None else min(came.value // GAS_PRICE, GAS_LIMIT)
        builder.store_var_uint(limit, 3)
        if came.value is None:
            builder.store_bit(1).store_var_uint(10_000, 2)
        else:
            builder.store_bit(0)
        builder.store_int(0, 8).store_int(0, 32).store_bit(0).store_uint(gas // 45, 32)
        return builder.store_uint(0, 512).end()

    def _write_actions(self, sent: Sequence[Sent]) -> int:
        count = len(sent)
        builder = self.sheet.cell().store_uint(0b110_0, 4)
        for fee in (FORWARD_FEE * 3 // 2 * count, FORWARD_FEE // 2 * count):
            if fee:
                builder.store_bit(1).store_coins(fee)
            else:
                builder.store_bit(0)
        builder.store_int(0, 32).store_bit(0).store_uint(count, 16)
        builder.store_uint(0, 16).store_uint(0, 16).store_uint(count, 16)
        builder.store_bytes(self.dice.randbytes(32))
        return builder.store_var_uint(3 * count, 3).store_var_uint(1_500 * count, 3).end()


def _store_message(sent: Sent, leaf: CellBuilder) -> None:
    leaf.store_ref(sent.cell)
