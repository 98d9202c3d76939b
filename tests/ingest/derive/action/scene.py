"""Builds traces message by message, for tests of rules that no recorded trace covers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Self

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import LIBRARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.action.body import Body, read_body
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.interface import Facts, Interfaces
from tonlake.ingest.derive.action.model import Message, Trace, Transaction
from tonlake.ingest.derive.action.protocol import jetton
from tonlake.ingest.derive.action.row import ActionRow

_LT_STEP = 10

Number = int
"""The type, where a method has its name."""


def account(name: str, workchain: int = 0) -> str:
    return f"{workchain}:{hashlib.sha256(name.encode()).hexdigest().upper()}"


class Cell:
    """A cell under construction, field by field; methods return it."""

    def __init__(self, opcode: Number | None = None, tree: CellTree | None = None) -> None:
        """Create an empty cell, or one with an opcode."""
        self._is_exotic = False
        self._builder = CellBuilder(tree)
        if opcode is not None:
            self._builder.store_uint(opcode, 32)

    def uint(self, value: Number, bits: Number) -> Self:
        self._builder.store_uint(value, bits)
        return self

    def int(self, value: Number, bits: Number) -> Self:
        self._builder.store_int(value, bits)
        return self

    def coins(self, value: Number) -> Self:
        self._builder.store_coins(value)
        return self

    def address(self, value: str | None) -> Self:
        """Store an address, addr_none for None."""
        if value is None:
            self._builder.store_uint(0, 2)
            return self
        workchain, _, digits = value.partition(":")
        self._builder.store_uint(0b100, 3).store_int(int(workchain), 8)
        self._builder.store_uint(int(digits, 16), 256)
        return self

    def text(self, value: str) -> Self:
        """Store short text as bytes."""
        self._builder.store_bytes(value.encode())
        return self

    def child(self) -> Cell:
        """Return a new cell, to be stored with ``ref``."""
        return Cell(tree=self._builder.tree)

    def library(self) -> Cell:
        """Return a library cell, to be stored with ``ref``."""
        cell = self.child().uint(LIBRARY, 8).uint(7, 256)
        cell._is_exotic = True
        return cell

    def ref(self, child: Cell) -> Self:
        """Store a reference to a cell from ``child``."""
        self._builder.store_ref(child.end())
        return self

    def end(self) -> Number:
        """Return the finished cell in its tree."""
        return self._builder.end(exotic=self._is_exotic)

    def boc(self) -> bytes:
        return serialize_boc(self._builder.tree, (self.end(),))

    def body(self) -> Body:
        return read_body(self.boc())


class Step:
    """A transaction of a scene; ``send`` continues from it."""

    def __init__(self, scene: Scene, address: str | None, message: Message) -> None:
        """Create a step; ``address`` is None for a log, which has no transaction."""
        self.scene = scene
        self.address = address
        self.message = message
        self.lt = scene.next_lt()
        self.out: list[Message] = []
        self.aborted = False
        self.exit_code: int | None = 0
        self.statuses = ("active", "active")

    def send(
        self,
        to: str | None,
        body: Cell | None = None,
        *,
        value: int = 1_000_000_000,
        opcode: int | None = None,
        bounce: bool = True,
        extra: dict[str, str] | None = None,
        init_state: bytes | None = None,
    ) -> Step:
        """Send a message; ``to`` is None for a log. Return what consumes it."""
        boc = (body or Cell(opcode)).boc()
        message = Message(
            msg_hash=self.scene.next_hash(),
            source=self.address,
            destination=to,
            value=None if to is None else value,
            extra_currencies=extra or {},
            opcode=read_body(boc).peek_opcode(),
            created_lt=self.scene.next_lt(),
            created_at=self.scene.now,
            bounce=bounce,
            boc=boc,
            init_state=init_state,
        )
        self.out.append(message)
        step = Step(self.scene, to, message)
        if to is not None:
            self.scene.steps.append(step)
        return step

    def send_jettons(
        self,
        wallet: str,
        to: str,
        taken_by: str,
        amount: int,
        write: Callable[[Cell], Cell] | None = None,
    ) -> Step:
        """Send jettons, with a forward payload of ``write``; return the receiver's step."""
        body = Cell(jetton.TRANSFER).uint(7, 64).coins(amount).address(to).address(self.address)
        body.uint(0, 1).coins(1)
        if write is None:
            body.uint(0, 1)
        else:
            body.uint(1, 1).ref(write(body.child()))
        self.scene.know_receiver(wallet, taken_by, to)
        arrived = Cell(jetton.INTERNAL).uint(7, 64).coins(amount).address(self.address)
        arrived.address(self.address).coins(1).uint(0, 1)
        return self.send(wallet, body).send(taken_by, arrived)

    def abort(self, exit_code: int = 35) -> Self:
        self.aborted, self.exit_code = True, exit_code
        return self

    def deploy(self) -> Self:
        self.statuses = ("nonexist", "active")
        return self

    def make(self) -> Transaction:
        assert self.address is not None
        return Transaction(
            tx_hash=hashlib.sha256(b"tx%d" % self.lt).digest(),
            account=self.address,
            lt=self.lt,
            now=self.scene.now,
            mc_seqno=self.scene.mc_seqno,
            orig_status=self.statuses[0],
            end_status=self.statuses[1],
            aborted=self.aborted,
            is_tick_tock=False,
            exit_code=self.exit_code,
            skip_reason=None,
            in_msg=self.message,
            out_msgs=self.out,
        )


class Scene:
    """A trace under construction, with the known facts of its accounts."""

    now = 1_700_000_000
    mc_seqno = 30_000_000

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.facts: dict[str, Facts] = {}
        self._lt = 1_000_000
        self._hashes = 0

    def next_lt(self) -> int:
        self._lt += _LT_STEP
        return self._lt

    def next_hash(self) -> bytes:
        self._hashes += 1
        return hashlib.sha256(b"message%d" % self._hashes).digest()

    def external(self, to: str, body: Cell | None = None) -> Step:
        """Begin with an external message to a wallet."""
        boc = (body or Cell()).boc()
        message = Message(msg_hash=self.next_hash(), source=None, destination=to, boc=boc)
        step = Step(self, to, message)
        self.steps.append(step)
        return step

    def know(self, address: str, interface: str, **fields: object) -> None:
        self.facts.setdefault(address, {})[interface] = {"address": address, **fields}

    def know_wallet(self, address: str, owner: str, jetton: str) -> str:
        """Declare an account a jetton wallet and return it."""
        self.know(address, "JettonWallet", owner=owner, jetton=jetton, balance=0)
        return address

    def know_receiver(self, wallet: str, taken_by: str, owner: str) -> None:
        """Declare the wallet that receives jettons from a known wallet of the same jetton."""
        known = self.facts.get(wallet, {}).get("JettonWallet")
        if known is not None and taken_by not in self.facts:
            self.know_wallet(taken_by, owner, known["jetton"])

    def trace(self) -> Trace:
        transactions = [step.make() for step in self.steps]
        root = transactions[0]
        return Trace(
            trace_id=root.tx_hash,
            external_hash=root.in_msg.msg_hash if root.in_msg else None,
            end_lt=max(each.lt for each in transactions),
            end_utime=self.now,
            mc_seqno_end=self.mc_seqno,
            state="complete",
            transactions=transactions,
        )

    def classify(self) -> list[ActionRow]:
        return classify(self.trace(), Interfaces(self.facts)).actions

    def state(self) -> str:
        return classify(self.trace(), Interfaces(self.facts)).state

    def find(self, action_type: str) -> ActionRow:
        found = [action for action in self.classify() if action.type == action_type]
        assert len(found) == 1, [action.type for action in self.classify()]
        return found[0]
