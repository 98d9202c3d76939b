"""Answers get-methods for detectors with the machine.

A method that is not in the code's table of methods is not run at all. Within a commit, answers are
cached by code, arguments, and what else the run depended on: without a table, that a method is
missing is found once for all accounts with the code.
"""

from collections.abc import Hashable
from typing import NamedTuple

import msgspec

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import LIBRARY
from tonlake.ingest.derive.contract.program import GAS_LIMIT, ProgramCache, from_tvm, to_tvm
from tonlake.ingest.derive.contract.record import find_method_ids
from tonlake.ingest.derive.contract.stack import Cell, GetMethod, Mismatch, Value
from tonlake.ingest.derive.contract.world import KnownAccount, Network, NotLoaded, World
from tonlake.ingest.derive.tvm.call import (
    SUCCESS,
    Context,
    GetMethodCall,
    PreviousBlocks,
    join_libraries,
    method_id,
)
from tonlake.ingest.derive.tvm.machine.cell import Cell as MachineCell
from tonlake.ingest.derive.tvm.machine.state import MOMENT
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.support import LIBRARY_MISSING, OWN_ENGINE, find_detector
from tonlake.ingest.errors import BocError, TvmError, TvmStackDeep, TvmStackLarge


class NotRun(Mismatch):
    """No engine could run the get-method to its end: what it answers is unknown."""


def make_answer_keys(question: GetMethod, state: KnownAccount, era: int) -> list[Hashable]:
    """Return keys by what a run depends on: each is equal only if that and the question are."""
    asked = era, state.code_hash, question.method, make_key(question.arguments)
    own = *asked, state.workchain, state.account, state.data_hash
    return [asked, own, (*own, state.utime, state.balance, state.extra_currencies)]


def make_key(value: Value) -> Hashable:
    """Return a key that is equal only for equal arguments."""
    if isinstance(value, Cell):
        return value.hash
    if isinstance(value, tuple | list):
        return tuple(map(make_key, value))
    if isinstance(value, CellSlice):
        children = value.tree.links[value.cell][value.ref :]
        bits = value.bits_left
        return bits, value.peek_uint(bits), tuple(value.tree.hash(child) for child in children)
    return None if value is None else int(value)


class Code(NamedTuple):
    """A code, the hash of the library that it refers to, if any, and its method ids."""

    cell: Cell
    library: bytes | None
    methods: frozenset[int] | None


class GetMethodSession:
    """Answers questions about contracts at the blocks of one commit."""

    def __init__(
        self,
        world: World,
        network: Network,
        tvm: TvmPool | None,
        *,
        programs: ProgramCache | None = None,
    ) -> None:
        """Ask the contracts of ``world``.

        ``tvm`` runs what the machine does not know, if it has a newer library. ``programs`` has
        those of earlier commits, and receives those of this one.
        """
        self._world = world
        self._network = network
        self._tvm = tvm
        self._codes: dict[bytes, Code | None] = {}
        self._answers: dict[Hashable, list[Value] | str | None] = {}
        """Stacks, reasons why a get-method was not run, None if it has no answer."""
        self._depends = MOMENT
        """What the last answer depends on."""
        self._programs = programs or ProgramCache()

    def ask(self, question: GetMethod, mc_seqno: int) -> list[Value]:
        """Return the stack that a get-method leaves after a masterchain block.

        Raises Mismatch if there is no such contract or method, or it failed; NotRun if no engine
        could run the method; NotLoaded if a state, or its cells, must be looked up first.
        """
        state = self._world.find_state(question.address, mc_seqno)
        if state is None or state.code_hash is None:
            raise Mismatch("no contract")
        if not self._world.has_looked_up(state.code_hash, state.data_hash):
            raise NotLoaded(question.address)
        if not self.has_method(state.code_hash, question.method):
            raise Mismatch("no such method")
        keys = make_answer_keys(question, state, self._network.find_era(mc_seqno))
        answer: list[Value] | str | None
        for key in keys:
            if key in self._answers:
                answer = self._answers[key]
                break
        else:
            self._depends = MOMENT
            try:
                answer = self.answer(question, state, mc_seqno)
            except NotRun as error:
                answer = str(error)
            self._answers[keys[self._depends.bit_length()]] = answer
        if answer is None:
            raise Mismatch("no answer")
        if isinstance(answer, str):
            raise NotRun(answer)
        return answer

    def has_method(self, code_hash: bytes, method: str) -> bool:
        """Return whether a code may have a method: its method table has it, or is unknown."""
        code = self.find_code(code_hash)
        return code is not None and (code.methods is None or method_id(method) in code.methods)

    def find_code(self, code_hash: bytes) -> Code | None:
        """Return a code whose cells were looked up; None if the lake lacks some."""
        if code_hash not in self._codes:
            self._codes[code_hash] = self._read_code(code_hash)
        return self._codes[code_hash]

    def _read_code(self, code_hash: bytes) -> Code | None:
        cell = self._world.find_cell(code_hash)
        if cell is None:
            return None
        library = read_library(cell)
        self._world.load_cells([library])
        methods = find_method_ids(*(self._world.find_cell(library) or cell))
        return Code(cell, library, None if methods is None else frozenset(methods))

    def _find_library(self, library: bytes, mc_seqno: int) -> Cell | None:
        """Return a library, None if it is not public; raise NotRun if the lake lacks it."""
        if not self._network.may_be_public(library, mc_seqno):
            return None
        self._world.load_cells([library])
        found = self._world.find_cell(library)
        if found is None:
            raise NotRun(f"{LIBRARY_MISSING}: {library.hex()}")
        return found

    def _list_libraries(self, code: Cell, mc_seqno: int) -> dict[bytes, bytes]:
        """Return the public libraries that a code, or one of them, refers to, as bags by hash."""
        found: dict[bytes, bytes] = {}
        seen, todo = {code}, [code]
        for cell in todo:
            parts = [Cell(cell.tree, child) for child in cell.tree.links[cell.root]]
            library = read_library(cell)
            if library and (public := self._find_library(library, mc_seqno)):
                found[library] = public.bag()
                parts.append(public)
            todo += [part for part in parts if part not in seen]
            seen.update(parts)
        return found

    def answer(self, question: GetMethod, state: KnownAccount, mc_seqno: int) -> list[Value] | None:
        """Return the answer, None if there is none; raise NotRun if no engine could run it."""
        code = None if state.code_hash is None else self.find_code(state.code_hash)
        if code is None or (code.library and not self._find_library(code.library, mc_seqno)):
            return None
        data = self._world.find_cell(state.data_hash)
        if data is None:
            return None
        context = self.describe(state, mc_seqno)
        program = self._programs.find(code.cell)
        arguments = (*question.arguments, method_id(question.method))

        def find(library: bytes) -> MachineCell | None:
            found = self._find_library(library, mc_seqno)
            return None if found is None else self._programs.find(found).cell

        try:
            ended = program.run(data, arguments, context, find)
        except BocError:
            return None
        reason = OWN_ENGINE.explain(ended.exit_code, context.version)
        if reason is not None:
            return self._run_library(question, code.cell, data, context, mc_seqno, reason)
        self._depends = ended.depends
        return ended.stack if ended.exit_code in SUCCESS else None

    def _run_library(
        self, question: GetMethod, code: Cell, data: Cell, context: Context, at: int, reason: str
    ) -> list[Value] | None:
        """Run what the machine does not know with the library of the settings, if it does."""
        if self._tvm is None or (engine := find_detector(self._tvm.settings)) == OWN_ENGINE:
            raise NotRun(reason)
        call = GetMethodCall(
            code=code.bag(),
            data=data.bag(),
            stack=(*map(to_tvm, question.arguments), method_id(question.method)),
            context=context,
            libraries=join_libraries(self._list_libraries(code, at)),
            gas_limit=GAS_LIMIT,
        )
        try:
            outcome = self._tvm.run_get_method(call)
        except (TvmStackDeep, TvmStackLarge):
            return None
        except TvmError as error:
            raise NotRun(str(error)) from error
        still = engine.explain(outcome.exit_code, context.version)
        if still is not None:
            raise NotRun(still)
        if outcome.exit_code not in SUCCESS:
            return None
        try:
            return [from_tvm(value) for value in outcome.stack]
        except BocError:
            return None

    def describe(self, state: KnownAccount, mc_seqno: int) -> Context:
        """Return the surroundings of a run."""
        amounts: dict[str, str] = msgspec.json.decode(state.extra_currencies or "{}")
        config = self._network.find_config(mc_seqno)
        return Context(
            workchain=state.workchain,
            account=state.account,
            now=state.utime,
            balance=state.balance,
            currencies={int(number): int(amount) for number, amount in amounts.items()},
            config=config.root,
            version=config.version,
            previous=PreviousBlocks(),
        )


def read_library(cell: Cell) -> bytes | None:
    """Return the hash in a library cell; None if the cell is not a library cell."""
    is_library = cell.tree.kind(cell.root) == LIBRARY
    return cell.tree.payload(cell.root)[1:33] if is_library else None
