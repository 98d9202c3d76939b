"""Get-methods answered for detectors: from data cells where the code is known, else by the TVM.

What the code's table of methods lacks is not run at all; where the table is not known, a method
that failed once is taken for one that the code lacks. An answer is remembered while a commit is
derived, for equal code, data and arguments of one account.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.ingest.decode.cell.exotic import LIBRARY
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.layout import Subject
from tonlake.ingest.derive.contract.record import find_method_ids
from tonlake.ingest.derive.contract.stack import Cell, Mismatch, from_tvm, to_tvm
from tonlake.ingest.derive.contract.standard import jetton, multisig, nft_data
from tonlake.ingest.derive.contract.world import NotLoaded
from tonlake.ingest.derive.tvm.call import GetMethodCall, Outcome, method_id
from tonlake.ingest.derive.tvm.context import Context, PreviousBlocks, build_c7, join_libraries
from tonlake.ingest.errors import BocError, TvmError, TvmMissing

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator

    from tonlake.ingest.derive.contract.known import AccountState
    from tonlake.ingest.derive.contract.layout import Reader
    from tonlake.ingest.derive.contract.stack import Question, Value
    from tonlake.ingest.derive.contract.world import Network, World
    from tonlake.ingest.derive.tvm.pool import TvmPool

_GOOD = (0, 1)  # normal and alternative end of a run


class Code(NamedTuple):
    """A code: the cell of the account, its library, the cell it resolves to, and its method ids."""

    cell: Cell
    library: bytes | None
    resolved: Cell
    methods: frozenset[int] | None


class Posed(NamedTuple):
    """A question to a contract in a state, after a masterchain block."""

    question: Question
    state: AccountState
    mc_seqno: int


class Unanswered(Exception):
    """A question that is gathered, to be run by the TVM with others."""


class GetMethodSession:
    """Answers questions about contracts at the blocks of one commit."""

    def __init__(self, world: World, network: Network, tvm: TvmPool | None, gas_limit: int) -> None:
        """Ask the contracts of ``world``; without ``tvm`` those whose data can be read."""
        self._world = world
        self._network = network
        self._tvm = tvm
        self._gas_limit = gas_limit
        self._codes: dict[bytes, Code | None] = {}
        self._lacking: set[tuple[bytes, str]] = set()
        self._answers: dict[Hashable, list[Value] | None] = {}
        self._gathered: dict[Hashable, Posed] = {}
        self._prepared: tuple[AccountState, int, GetMethodCall] | None = None
        self.runs = 0

    def ask(self, question: Question, mc_seqno: int) -> list[Value]:
        """Return the stack that a get-method leaves after a masterchain block.

        Raises:
            Mismatch: there is no such contract or method, or it failed.
            NotLoaded: a state, or its cells, must be looked up first.
            Unanswered: it is run with others, by ``run_gathered``; ask again then.
        """
        state = self._world.find_state(question.address, mc_seqno)
        if state is None or state.code_hash is None:
            raise Mismatch("no contract")
        if not self._world.has_looked_up(state.code_hash, state.data_hash):
            raise NotLoaded(question.address)
        if not self.has_method(state.code_hash, question.method):
            raise Mismatch("no such method")
        key = (
            *(state.workchain, state.account, state.code_hash, state.data_hash),
            *(question.method, make_key(question.arguments)),
        )
        if key not in self._answers:
            if self._needs_tvm(question, state, mc_seqno):
                self._gathered[key] = Posed(question, state, mc_seqno)
                raise Unanswered
            self._answers[key] = self.answer(question, state, mc_seqno)
        answer = self._answers[key]
        if answer is None:
            raise Mismatch("no answer")
        return answer

    def run_gathered(self) -> bool:
        """Run the get-methods that were gathered; return whether there were any."""
        gathered, self._gathered = self._gathered, {}
        for (key, posed), outcome in zip(
            gathered.items(), self._run(gathered.values()), strict=True
        ):
            try:
                self._answers[key] = self._read(posed, outcome)
            except (BocError, Mismatch):
                self._answers[key] = None
        return bool(gathered)

    def _needs_tvm(self, question: Question, state: AccountState, mc_seqno: int) -> bool:
        """Whether the TVM alone answers, and what it answers says nothing of other accounts."""
        code = None if state.code_hash is None else self._codes[state.code_hash]
        if code is None or code.methods is None or self._world.find_cell(state.data_hash) is None:
            return False
        if code.library is not None and not self._network.is_public(code.library, mc_seqno):
            return False
        return state.code_hash is not None and find_reader(state.code_hash, question.method) is None

    def has_method(self, code_hash: bytes, method: str) -> bool:
        """Return whether a code may have a method: its table has it, or is not known."""
        code = self.find_code(code_hash)
        if code is None or (code_hash, method) in self._lacking:
            return False
        return code.methods is None or method_id(method) in code.methods

    def find_code(self, code_hash: bytes) -> Code | None:
        """Return a code whose cells were looked up; None where the lake lacks some."""
        if code_hash not in self._codes:
            self._codes[code_hash] = self._read_code(code_hash)
        return self._codes[code_hash]

    def _read_code(self, code_hash: bytes) -> Code | None:
        cell = resolved = self._world.find_cell(code_hash)
        if cell is None or resolved is None:
            return None
        library = read_library(cell)
        if library is not None:
            self._world.load_cells([library])
            resolved = self._world.find_cell(library)
            if resolved is None:
                readable = frozenset(map(method_id, list_readable(code_hash)))
                return Code(cell, library, cell, readable)
        methods = find_method_ids(resolved.tree, resolved.root)
        return Code(cell, library, resolved, None if methods is None else frozenset(methods))

    def answer(self, question: Question, state: AccountState, mc_seqno: int) -> list[Value] | None:
        """Return the stack of an answer; None where there is none."""
        data = self._world.find_cell(state.data_hash)
        if data is None or state.code_hash is None:
            return None
        code = self._codes[state.code_hash]
        if code is None:
            return None
        reader = find_reader(state.code_hash, question.method)
        try:
            if reader is not None:
                return reader(Subject(state.address, code.cell, data, question.arguments))
            if code.library is not None and not self._network.is_public(code.library, mc_seqno):
                return None
            return self.run_tvm(question, state, mc_seqno)
        except (BocError, Mismatch):
            return None

    def run_tvm(self, question: Question, state: AccountState, mc_seqno: int) -> list[Value] | None:
        """Return the stack that the TVM leaves; None where it fails, or none is there.

        Raises:
            BocError, Mismatch: the stack cannot be read.
        """
        code = None if state.code_hash is None else self.find_code(state.code_hash)
        if code is None or self._world.find_cell(state.data_hash) is None:
            return None
        posed = Posed(question, state, mc_seqno)
        [outcome] = self._run((posed,))
        return self._read(posed, outcome)

    def _run(self, posed: Collection[Posed]) -> Iterator[Outcome | None]:
        """Yield how get-methods ended; None where the TVM failed, or none is there."""
        left = len(posed)
        try:
            for outcome in (
                () if self._tvm is None else self._tvm.run_get_methods(self._make(posed))
            ):
                left -= 1
                self.runs += 1
                yield outcome if isinstance(outcome, Outcome) else None
        except TvmMissing:
            self._tvm = None
        except TvmError:
            pass  # no process starts: the others have no answer either
        yield from repeat(None, left)

    def _read(self, posed: Posed, outcome: Outcome | None) -> list[Value] | None:
        """Return the stack that a get-method left; None where it failed.

        Raises:
            BocError, Mismatch: the stack cannot be read.
        """
        if outcome is None:
            return None
        if outcome.exit_code not in _GOOD:
            code_hash = posed.state.code_hash
            if code_hash is not None and (code := self._codes[code_hash]) and code.methods is None:
                self._lacking.add((code_hash, posed.question.method))
            return None
        return [from_tvm(value) for value in outcome.stack]

    def _make(self, posed: Iterable[Posed]) -> Iterator[GetMethodCall]:
        """Yield the calls of questions to contracts whose code and data are at hand."""
        for question, state, mc_seqno in posed:
            code = None if state.code_hash is None else self._codes[state.code_hash]
            data = self._world.find_cell(state.data_hash)
            if code is None or data is None:
                raise LookupError(f"{state.address} lacks code or data")
            stack = (*map(to_tvm, question.arguments), method_id(question.method))
            yield msgspec.structs.replace(self._prepare(state, code, data, mc_seqno), stack=stack)

    def _prepare(self, state: AccountState, code: Code, data: Cell, mc_seqno: int) -> GetMethodCall:
        """Return a call to an account without its stack; the last one is kept.

        Detectors ask one account after another, and of each several methods.
        """
        if self._prepared is not None and self._prepared[:2] == (state, mc_seqno):
            return self._prepared[2]
        bag = self._world.write_code(code.cell)
        call = GetMethodCall(
            code=bag,
            data=data.bag(),
            stack=(),
            c7=build_c7(self._describe(state, bag, mc_seqno)),
            libraries=None
            if code.library is None
            else join_libraries({code.library: code.resolved.bag()}),
            gas_limit=self._gas_limit,
        )
        self._prepared = state, mc_seqno, call
        return call

    def _describe(self, state: AccountState, code: bytes, mc_seqno: int) -> Context:
        amounts: dict[str, str] = msgspec.json.decode(state.extra_currencies or "{}")
        return Context(
            workchain=state.workchain,
            account=state.account,
            now=state.utime,
            balance=state.balance,
            currencies={int(number): int(amount) for number, amount in amounts.items()},
            code=code,
            config=self._network.find_config(mc_seqno),
            previous=PreviousBlocks(),
        )


def read_library(cell: Cell) -> bytes | None:
    """Return the hash that a library cell has; None where it is no library cell."""
    if cell.tree.kind(cell.root) != LIBRARY:
        return None
    return cell.tree.payload(cell.root)[1:33]


def make_key(value: Value) -> Hashable:
    """Return a value that is equal for equal arguments alone."""
    if isinstance(value, Cell):
        return value.hash
    if isinstance(value, tuple | list):
        return tuple(map(make_key, value))
    if isinstance(value, CellSlice):
        children = value.tree.refs(value.cell)[value.ref :]
        bits = value.bits_left
        return bits, value.peek_uint(bits), tuple(value.tree.hash(child) for child in children)
    return None if value is None else int(value)


READERS: dict[tuple[bytes, str], Reader] = {
    (bytes.fromhex(code_hash), method): reader
    for module in (jetton, nft_data, multisig)
    for (code_hash, method), reader in module.READERS.items()
}
"""By code hash of the account (that of a library cell where the code is one), and method."""


def find_reader(code_hash: bytes, method: str) -> Reader | None:
    """Return what answers a method of a code, if it is known."""
    return READERS.get((code_hash, method))


def list_readable(code_hash: bytes) -> list[str]:
    """Return the methods of a code that can be answered from its data."""
    return [method for code, method in READERS if code == code_hash]
