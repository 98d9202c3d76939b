"""The stages of derivation in execution order: their inputs, their outputs and their rebuilds.

A stage turns the base rows of a commit, and the files of earlier stages, into derived files.
``tonlake.lake.commit.commit`` runs all stages before it acquires the log lock.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tonlake.ingest.derive.action.derivation import rederive_actions
from tonlake.ingest.derive.body.derivation import rederive_bodies
from tonlake.ingest.derive.contract.derivation import rederive_contracts
from tonlake.ingest.derive.trace import rederive_traces
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope
from tonlake.ingest.spread import HERE
from tonlake.lake import schema
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.file.rows import without_collector
from tonlake.lake.log.place import Derivation, Derive, NewFile, Place
from tonlake.lake.log.state import Commit, LogState
from tonlake.lake.schema.column import Table

Step = Callable[[LogState, Mapping[str, pa.Table], Place, Sequence[NewFile]], Derivation]
"""A stage of one lake: returns the files derived from the base rows of a range, by table, and
from the files of earlier stages."""


class Stage(NamedTuple):
    """A named stage, with the tables that it reads and writes."""

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    rederive: Callable[[Path, LogState, IngestSections, Scope], Derivation | None]
    """Derives the files again for the ranges in a scope; returns None if the scope covers no
    range."""

    follows_earlier: bool = False
    """Whether rows depend on earlier ranges, so that a backfill of earlier ranges changes them."""

    marker: tuple[str, str] | None = None
    """A base table and a derived table: each range with rows of the first has files of the
    second."""

    has_versions: bool = False
    """Whether a rebuild skips ranges that this version has already derived."""

    enabled: Callable[[IngestSections], bool] = lambda _settings: True
    """Whether the settings enable the stage."""


def _names(*tables: Table) -> frozenset[str]:
    return frozenset(table.name for table in tables)


_CHAIN = (schema.TRANSACTIONS, schema.MESSAGES)
_STATES = (schema.ACCOUNT_STATES, schema.STATE_CELLS)

STAGES = (
    Stage(
        "traces",
        reads=_names(*_CHAIN),
        writes=_names(schema.TRANSACTION_TRACES, schema.TRACES, schema.OPEN_EDGES),
        rederive=rederive_traces,
        marker=(schema.TRANSACTIONS.name, schema.TRANSACTION_TRACES.name),
    ),
    Stage(
        "bodies",
        reads=_names(schema.MESSAGES),
        writes=_names(schema.MESSAGE_BODIES),
        rederive=rederive_bodies,
        has_versions=True,
    ),
    Stage(
        "contracts",
        reads=_names(*_CHAIN, *_STATES, schema.BLOCKS, schema.CONFIG_PARAMS, schema.LIBRARIES),
        writes=_names(*schema.CONTRACT_TABLES),
        rederive=rederive_contracts,
        follows_earlier=True,
        marker=(schema.ACCOUNT_STATES.name, schema.INTERFACES.name),
        enabled=lambda settings: settings.ingest.detect_contracts,
    ),
    Stage(
        "actions",
        reads=_names(*_CHAIN, *_STATES, schema.TRANSACTION_TRACES, schema.TRACES)
        | _names(
            schema.JETTON_WALLETS,
            schema.NFT_ITEMS,
            schema.NFT_SALES,
            schema.DEX_POOLS,
            schema.MULTISIG_ORDERS,
        ),
        writes=_names(*schema.ACTION_TABLES),
        rederive=rederive_actions,
        follows_earlier=True,
        has_versions=True,
        enabled=lambda settings: settings.ingest.classify_actions,
    ),
)
"""All stages in execution order."""


def derive_in_order(steps: Mapping[str, Step], *, at_once: bool = False) -> Derive:
    """Return a function that runs every stage in ``steps``; each gets the tables that it declares.

    With ``at_once`` each stage runs in its own thread and waits for the stages that it reads from;
    useful where stages spend their time waiting for worker processes.
    """
    present = [stage for stage in STAGES if stage.name in steps]

    def derive(state: LogState, rows: Mapping[str, pa.Table], place: Place) -> Iterator[Derivation]:
        begun: dict[str, Future[Derivation]] = {}

        @without_collector()
        def run(stage: Stage) -> Derivation:
            inputs = {name: table for name, table in rows.items() if name in stage.reads}
            before = [each for each in present if each.writes & stage.reads]
            files = [file for each in before for file in begun[each.name].result().files]
            earlier = [file for file in files if file.table in stage.reads]
            return steps[stage.name](state, inputs, place, earlier)

        if not at_once:
            for stage in present:
                begun[stage.name] = HERE.submit(run, stage)
                yield begun[stage.name].result()
            return
        with ThreadPoolExecutor(max(1, len(present)), thread_name_prefix="stage") as pool:
            for stage in present:
                begun[stage.name] = pool.submit(run, stage)
            for task in begun.values():
                yield task.result()

    return derive


def rebuild(
    name: str, lake_dir: Path, settings: IngestSections, scope: Scope | None = None
) -> Commit | None:
    """Derive the files of a stage again and commit them; return None if nothing changed.

    Index segments with outdated traces or contracts have to be refreshed by ``rebuild_index``.
    Traces are always derived for all ranges. Raises LakeNotFound, LakeCorrupt, IngestError.
    """
    (stage,) = (stage for stage in STAGES if stage.name == name)

    def derive(state: LogState) -> Derivation | None:
        return stage.rederive(lake_dir, state, settings, scope or Scope())

    return commit_derived(lake_dir, settings.lake, derive)
