"""Answers get-methods for detectors: from data cells, with ``machine``, or with the TVM.

Readers of data cells cover known codes; ``machine`` runs the most common instructions and leaves
the rest to the TVM. A method that is not in the code's table of methods is not run at all; if the
table is unknown, a method that failed once is assumed to be missing from the code. Within a commit,
answers are cached by code, data and arguments of an account.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.ingest.decode.cell.exotic import LIBRARY
from tonlake.ingest.derive.contract.cache import AnswerCache
from tonlake.ingest.derive.contract.layout import Subject
from tonlake.ingest.derive.contract.machine.stack import Account, Declined, Thrown
from tonlake.ingest.derive.contract.question import NotRun, Posed, Unanswered, make_answer_key
from tonlake.ingest.derive.contract.reader import find_reader, list_readable, read_answer
from tonlake.ingest.derive.contract.record import find_method_ids
from tonlake.ingest.derive.contract.stack import Cell, Mismatch, from_tvm, to_tvm
from tonlake.ingest.derive.contract.world import NotLoaded
from tonlake.ingest.derive.tvm.call import (
    INVALID_OPCODE,
    SUCCESS,
    GetMethodCall,
    Outcome,
    method_id,
)
from tonlake.ingest.derive.tvm.context import Context, PreviousBlocks, build_c7, join_libraries
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL
from tonlake.ingest.derive.tvm.support import find_engine
from tonlake.ingest.errors import (
    BocError,
    TvmError,
    TvmMissing,
    TvmStackDeep,
    TvmStackLarge,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping

    from tonlake.ingest.derive.contract.known import AccountState
    from tonlake.ingest.derive.contract.stack import Question, Value
    from tonlake.ingest.derive.contract.world import Network, World
    from tonlake.ingest.derive.tvm.pool import TvmPool


_FAULTS_OF_CONTRACT = (TvmStackDeep, TvmStackLarge)
"""Errors that the contract causes: its result is too large."""


class Code(NamedTuple):
    """A code: the account's cell, its library hash, the cell it resolves to, and its method ids."""

    cell: Cell
    library: bytes | None
    resolved: Cell
    methods: frozenset[int] | None


class GetMethodSession:
    """Answers questions about contracts at the blocks of one commit."""

    def __init__(
        self,
        world: World,
        network: Network,
        tvm: TvmPool | None,
        gas_limit: int,
        *,
        cache: AnswerCache | None = None,
    ) -> None:
        """Ask the contracts of ``world``; without ``tvm``, questions that need it have no answer.

        ``cache`` has answers of earlier commits, and receives those of this one.
        """
        self._world = world
        self._network = network
        self._tvm = tvm
        self._gas_limit = gas_limit
        self._codes: dict[bytes, Code | None] = {}
        self._missing_methods: set[tuple[bytes, str]] = set()
        self._answers: dict[Hashable, list[Value] | None] = {}
        self._not_run: dict[Hashable, str] = {}
        self._gathered: dict[Hashable, Posed] = {}
        self._cache = cache or AnswerCache()
        self._planted: dict[Cell, int] = {}
        self._prepared: tuple[AccountState, int, GetMethodCall] | None = None
        self.runs = 0

    def ask(self, question: Question, mc_seqno: int) -> list[Value]:
        """Return the stack that a get-method leaves after a masterchain block.

        Raises:
            Mismatch: there is no such contract or method, or it failed.
            NotRun: no engine could run the method.
            NotLoaded: a state, or its cells, must be looked up first.
            Unanswered: the question waits for ``run_gathered``; ask again afterwards.
        """
        state = self._world.find_state(question.address, mc_seqno)
        if state is None or state.code_hash is None:
            raise Mismatch("no contract")
        if not self._world.has_looked_up(state.code_hash, state.data_hash):
            raise NotLoaded(question.address)
        if not self.has_method(state.code_hash, question.method):
            raise Mismatch("no such method")
        key = make_answer_key(question, state)
        if key not in self._answers and key not in self._not_run:
            self._answer_or_gather(key, Posed(question, state, mc_seqno))
        if key in self._not_run:
            raise NotRun(self._not_run[key])
        answer = self._answers[key]
        if answer is None:
            raise Mismatch("no answer")
        return answer

    def run_gathered(self) -> bool:
        """Run the gathered get-methods; return whether there were any."""
        gathered, self._gathered = self._gathered, {}
        self._run_all(gathered)
        return bool(gathered)

    def _run_all(self, gathered: Mapping[Hashable, Posed]) -> None:
        for (key, posed), outcome in zip(
            gathered.items(), self._run(gathered.values()), strict=True
        ):
            try:
                self._answers[key] = self._read(posed, outcome)
            except NotRun as error:
                self._not_run[key] = str(error)

    def _answer_or_gather(self, key: Hashable, posed: Posed) -> None:
        """Keep the answer, or gather the question if only the TVM can answer it.

        If the methods of a code are unknown, the answer decides what to ask next, so the TVM runs
        at once.
        """
        try:
            self._answers[key] = self.answer(*posed)
        except Declined as declined:
            code = None if posed.state.code_hash is None else self._codes[posed.state.code_hash]
            if code is not None and code.methods is None:
                self._run_all({key: posed})
                return
            self._gathered[key] = posed
            raise Unanswered from declined

    def has_method(self, code_hash: bytes, method: str) -> bool:
        """Return whether a code may have a method: its method table has it, or is unknown."""
        code = self.find_code(code_hash)
        if code is None or (code_hash, method) in self._missing_methods:
            return False
        return code.methods is None or method_id(method) in code.methods

    def find_code(self, code_hash: bytes) -> Code | None:
        """Return a code whose cells were looked up; None if the lake lacks some."""
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

    def _may_answer(self, code: Code, method: str, mc_seqno: int) -> bool:
        """Return whether the code is available, or not needed for this method."""
        if code.library is None or find_reader(code.cell.hash, method) is not None:
            return True
        return self._network.is_public(code.library, mc_seqno)

    def answer(self, question: Question, state: AccountState, mc_seqno: int) -> list[Value] | None:
        """Return the answer without the TVM; None if the get-method has none.

        Raises:
            Declined: the TVM has to run the get-method.
        """
        code = None if state.code_hash is None else self.find_code(state.code_hash)
        data = self._world.find_cell(state.data_hash)
        if code is None or data is None or not self._may_answer(code, question.method, mc_seqno):
            return None
        key = make_answer_key(question, state) if question.arguments else None
        answer = None if key is None else self._cache.find(key)
        if answer is not None:
            return answer
        reader = find_reader(code.cell.hash, question.method)
        if reader is None:
            answer = self.run_machine(Posed(question, state, mc_seqno), code, data)
        else:
            answer = read_answer(
                reader, Subject(state.address, code.cell, data, question.arguments)
            )
        if key is not None and answer is not None:
            self._cache.keep(key, answer)
        return answer

    def run_machine(self, posed: Posed, code: Code, data: Cell) -> list[Value] | None:
        """Return the stack that the code leaves in ``machine``; None if it fails.

        Raises:
            Declined: the TVM has to run it.
        """
        program = self._cache.find_program(code.resolved)
        if program is None:
            raise Declined("the code is an exotic cell")
        question, state, mc_seqno = posed
        arguments = (*question.arguments, method_id(question.method))
        version = self._network.find_config(mc_seqno).version
        account = Account(state.address, data, code.cell, version)
        try:
            return program.run(account, arguments, self._gas_limit, self._planted)
        except Thrown:
            self._note_failure(code, question.method)
            return None

    def _note_failure(self, code: Code, method: str) -> None:
        if code.methods is None:
            self._missing_methods.add((code.cell.hash, method))

    def run_tvm(self, question: Question, state: AccountState, mc_seqno: int) -> list[Value] | None:
        """Return the stack that the TVM leaves; None if it fails.

        Raises:
            NotRun: the TVM could not run it.
        """
        code = None if state.code_hash is None else self.find_code(state.code_hash)
        if code is None or self._world.find_cell(state.data_hash) is None:
            return None
        posed = Posed(question, state, mc_seqno)
        [outcome] = self._run((posed,))
        return self._read(posed, outcome)

    def _run(self, posed: Collection[Posed]) -> Iterator[Outcome | TvmError]:
        """Yield the outcomes of get-methods, or why the TVM did not run them."""
        left = len(posed)
        error: TvmError = TvmMissing(HOW_TO_INSTALL)
        try:
            for outcome in (
                () if self._tvm is None else self._tvm.run_get_methods(self._make(posed))
            ):
                left -= 1
                self.runs += 1
                yield outcome
        except TvmMissing as missing:
            self._tvm, error = None, missing
        except TvmError as failed:
            error = failed  # no process starts: the remaining questions have no answer either
        yield from repeat(error, left)

    def _read(self, posed: Posed, outcome: Outcome | TvmError) -> list[Value] | None:
        """Return the stack that a get-method left; None if it failed or cannot be read.

        Raises:
            NotRun: the engine is at fault, not the contract.
        """
        if isinstance(outcome, _FAULTS_OF_CONTRACT):
            return None
        if isinstance(outcome, TvmError):
            raise NotRun(str(outcome))
        if outcome.exit_code == INVALID_OPCODE and self._tvm is not None:
            version = self._network.find_config(posed.mc_seqno).version
            reason = find_engine(self._tvm.settings).explain(outcome, version)
            if reason is not None:
                raise NotRun(reason)
        if outcome.exit_code not in SUCCESS:
            code = None if posed.state.code_hash is None else self._codes[posed.state.code_hash]
            if code is not None:
                self._note_failure(code, posed.question.method)
            return None
        try:
            return [from_tvm(value) for value in outcome.stack]
        except (BocError, Mismatch):
            return None

    def _make(self, posed: Iterable[Posed]) -> Iterator[GetMethodCall]:
        """Yield the TVM calls of questions to contracts whose code and data were looked up."""
        for question, state, mc_seqno in posed:
            code = None if state.code_hash is None else self._codes[state.code_hash]
            data = self._world.find_cell(state.data_hash)
            if code is None or data is None:
                raise LookupError(f"code or data of {state.address} are missing")
            stack = (*map(to_tvm, question.arguments), method_id(question.method))
            yield msgspec.structs.replace(self._prepare(state, code, data, mc_seqno), stack=stack)

    def _prepare(self, state: AccountState, code: Code, data: Cell, mc_seqno: int) -> GetMethodCall:
        """Return a call to an account without its stack, and cache it.

        Detectors call several methods of one account before they move on to the next.
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
    """Return the hash in a library cell; None if the cell is not a library cell."""
    is_library = cell.tree.kind(cell.root) == LIBRARY
    return cell.tree.payload(cell.root)[1:33] if is_library else None
