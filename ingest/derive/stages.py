"""The stages of derivation, in their order: what each reads and what each writes.

A stage turns the base rows of a commit, and the files of earlier stages, into files of its own.
``tonlake.lake.commit.commit`` runs all of them before it takes the lock of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from tonlake.lake.log.place import Derivation, NewFile
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    ACTION_TABLES,
    BLOCKS,
    CONFIG_PARAMS,
    CONTRACT_TABLES,
    LIBRARIES,
    MESSAGE_BODIES,
    MESSAGES,
    OPEN_EDGES,
    STATE_CELLS,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
)
from tonlake.lake.schema.contract import (
    DEX_POOLS,
    JETTON_WALLETS,
    MULTISIG_ORDERS,
    NFT_ITEMS,
    NFT_SALES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from tonlake.lake.log.place import Derive, Place
    from tonlake.lake.log.state import LogState
    from tonlake.lake.schema.column import Table


class Stage(NamedTuple):
    """A stage by its name, with the tables that it reads and writes."""

    name: str
    reads: frozenset[str]
    writes: frozenset[str]


class Step(Protocol):
    """A stage at work on one lake."""

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        earlier: Sequence[NewFile] = (),
        /,
    ) -> Derivation:
        """Return the files that follow from base rows and from the files of earlier stages."""


def _stage(name: str, reads: Sequence[Table], writes: Sequence[Table]) -> Stage:
    return Stage(name, frozenset(t.name for t in reads), frozenset(t.name for t in writes))


_CHAIN = (TRANSACTIONS, MESSAGES)
_STATES = (ACCOUNT_STATES, STATE_CELLS)

STAGES = (
    _stage("traces", _CHAIN, (TRANSACTION_TRACES, TRACES, OPEN_EDGES)),
    _stage("contracts", (*_CHAIN, *_STATES, BLOCKS, CONFIG_PARAMS, LIBRARIES), CONTRACT_TABLES),
    _stage(
        "actions",
        (
            *(*_CHAIN, *_STATES, TRANSACTION_TRACES, TRACES),
            *(JETTON_WALLETS, NFT_ITEMS, NFT_SALES, DEX_POOLS, MULTISIG_ORDERS),
        ),
        ACTION_TABLES,
    ),
    _stage("bodies", (MESSAGES,), (MESSAGE_BODIES,)),
)
"""All stages in the order in which they run."""


def derive_in_order(steps: Mapping[str, Step]) -> Derive:
    """Return what runs the stages that have a step; each sees the tables that it declares."""

    def derive(state: LogState, rows: Mapping[str, pa.Table], place: Place) -> Derivation:
        files: list[NewFile] = []
        removed: frozenset[str] = frozenset()
        for stage in STAGES:
            if stage.name not in steps:
                continue
            inputs = {name: table for name, table in rows.items() if name in stage.reads}
            earlier = [file for file in files if file.table in stage.reads]
            made = steps[stage.name](state, inputs, place, earlier)
            files += made.files
            removed |= made.removed
        return Derivation(files, removed)

    return derive
