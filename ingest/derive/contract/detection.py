"""Finds all contracts of a commit: runs detectors over its states and batches their questions."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from tonlake.ingest.derive.contract.session import GetMethodSession, NotRun
from tonlake.ingest.derive.contract.stack import (
    AddrStd,
    Detection,
    Finding,
    GetMethod,
    Mismatch,
    Trigger,
    Value,
    address_fields,
)
from tonlake.ingest.derive.contract.standard import TRIGGERS, list_triggers
from tonlake.ingest.derive.contract.wallet import read_wallet
from tonlake.ingest.derive.contract.world import KnownAccount, NotLoaded, World
from tonlake.ingest.errors import BocError
from tonlake.lake.schema import UNANSWERED_METHODS, WALLETS

_ROUNDS = 20
"""Maximum number of rounds: a detector asks few questions, about at most two accounts that are not
yet looked up."""


class ActiveDetection:
    """A detector in progress on one state."""

    def __init__(self, state: KnownAccount, trigger: Trigger) -> None:
        """Create the detector; ``advance`` starts it."""
        self.state = state
        self._trigger = trigger
        self._not_run: Finding | None = None
        self.findings: list[Finding] = []
        self._detection: Detection = trigger.detector(state.address)
        self._question: GetMethod | None = None
        self.missing: AddrStd | None = None
        """The account whose state must be looked up before the detector can continue."""

    def advance(self, session: GetMethodSession) -> bool:
        """Run the detector; return False once it has finished, True if it waits for a state."""
        self.missing = None
        try:
            self._question = self._question or next(self._detection)
            while True:
                answer = self._ask(session, self._question)
                self._question = self._detection.send(answer)
        except NotLoaded as missing:
            self.missing = missing.address
            return True
        except StopIteration as end:
            self.findings = end.value
        except (Mismatch, BocError):
            self._detection.close()
        if self._not_run is not None:
            self.findings.append(self._not_run)
        return False

    def _ask(self, session: GetMethodSession, question: GetMethod) -> list[Value] | None:
        try:
            return session.ask(question, self.state.mc_seqno)
        except Mismatch as error:
            if isinstance(error, NotRun) and self._not_run is None:
                self._not_run = self._describe(question, str(error))
            if question.required:
                raise
            return None

    def _describe(self, question: GetMethod, reason: str) -> Finding:
        fields = {
            "method": self._trigger.method,
            "contract_table": self._trigger.table.name,
            **address_fields("asked", question.address),
            "asked_method": question.method,
            "reason": reason,
        }
        return Finding(UNANSWERED_METHODS.name, fields)


class ContractDetection:
    """Detects the contracts among the accounts of a commit."""

    def __init__(self, world: World, session: GetMethodSession, global_id: int | None) -> None:
        """Detect in the states of a commit; ``global_id`` is the network's, None if unknown."""
        self._world = world
        self._session = session
        self._triggers = (*list_triggers(global_id), *TRIGGERS)

    def detect(
        self, states: Sequence[KnownAccount], before: int
    ) -> Iterator[tuple[KnownAccount, Finding]]:
        """Yield every finding in ``states``; ``before`` is the commit's first masterchain block."""
        codes = {state.code_hash for state in states}
        self._world.load_cells(codes | {state.data_hash for state in states})
        triggers = {code_hash: [*self._find_triggers(code_hash)] for code_hash in codes}
        yield from self._read_wallets(states)
        active = [
            ActiveDetection(state, trigger)
            for state in states
            if state.data_hash is not None
            for trigger in triggers[state.code_hash]
        ]
        yield from self._settle(active, before)

    def detect_before(
        self, places: Iterable[tuple[AddrStd, int]], before: int
    ) -> Iterator[tuple[KnownAccount, Finding]]:
        """Yield findings about accounts as of the masterchain block before that in ``places``."""
        ordered = sorted(places)
        self._load({address for address, _ in ordered}, before)
        active = []
        for address, mc_seqno in ordered:
            state = self._world.find_state(address, mc_seqno - 1)
            if state is not None and state.data_hash is not None:
                triggers = self._find_triggers(state.code_hash)
                then = state._replace(mc_seqno=mc_seqno - 1)
                active += [ActiveDetection(then, trigger) for trigger in triggers]
        yield from self._settle(active, before)

    def _settle(
        self, active: list[ActiveDetection], before: int
    ) -> Iterator[tuple[KnownAccount, Finding]]:
        """Run detectors until they finish, and yield their findings."""
        waiting = active
        for _ in range(_ROUNDS):
            waiting = [each for each in waiting if each.advance(self._session)]
            if not waiting:
                break
            missing = {each.missing for each in waiting if each.missing is not None}
            if missing:
                self._load(missing, before)
        for each in active:
            for finding in each.findings:
                yield each.state, finding

    def _find_triggers(self, code_hash: bytes | None) -> Iterator[Trigger]:
        if code_hash is None:
            return
        for trigger in self._triggers:
            may_apply = trigger.codes is None or code_hash in trigger.codes
            if may_apply and self._session.has_method(code_hash, trigger.method):
                yield trigger

    def _read_wallets(
        self, states: Sequence[KnownAccount]
    ) -> Iterator[tuple[KnownAccount, Finding]]:
        for state in states:
            if state.code_hash is None:
                continue
            data = self._world.find_cell(state.data_hash)
            start = None
            with suppress(BocError):
                start = data and data.slice()
            fields = read_wallet(state.code_hash, start)
            if fields is not None:
                yield state, Finding(WALLETS.name, fields)

    def _load(self, addresses: set[AddrStd], before: int) -> None:
        self._world.load_states(addresses, before)
        found = [state for each in sorted(addresses) for state in self._world.list_known(each)]
        self._world.load_cells(
            {state.code_hash for state in found} | {state.data_hash for state in found}
        )
