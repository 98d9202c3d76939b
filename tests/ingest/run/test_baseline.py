"""Baseline: a lake that begins late knows every account as the lake of the whole chain does."""

import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from tests.damage import flip_any
from tests.ingest.facts import ask
from tests.ingest.simulator.service import list_family
from tests.ingest.statefiles import Split, write_states
from tests.ingest.whole import ingest_node, read_all, tree_digest
from tests.patience import PATIENT, compose
from tonlake.ingest.command.rebuild import upgrade_lake
from tonlake.ingest.decode import wholestate
from tonlake.ingest.decode.cell.packed import PackedCells
from tonlake.ingest.decode.wholestate import cut_branches, decode_accounts, load_branch
from tonlake.ingest.errors import IngestError, SourceError
from tonlake.ingest.run.baseline import BaselineReport, StateReader, StateTask, ingest_state
from tonlake.ingest.run.workers import start_workers
from tonlake.ingest.source.node import statefile
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.rocks import Store
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import NamedStates, StateFiles, StateStore
from tonlake.ingest.source.origin import Origin
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.commit.delta import FOLDER, POSITION_FILE
from tonlake.lake.duck.connection import connect
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_segments
from tonlake.lake.log.place import list_baseline_files
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.removal import prune_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import ACCOUNT_STATES, HISTORY_TABLES

ROOT = Path(__file__).resolve().parents[3]
FIRST_BLOCKS = (100, 180)
LAST = 238
EMPTY = ACCOUNT_STATES.empty
FLIPS = [30, pytest.param(200, marks=pytest.mark.long)]
KILLS = [1, pytest.param(100, marks=pytest.mark.long)]
SEED = 20261123
SPLITS = (Split(bits=1, proof=True, relabelled=True), Split(bits=3, proof=False, relabelled=False))
OF_THE_MOMENT = ("mc_seqno", "utime")
"""Columns of a state in which a baseline differs: when the account was touched is not known."""


def bring_state(
    node: Path, lake: Path, at: int | None = None, *, only_active: bool = False, workers: int = 1
) -> BaselineReport:
    with ExitStack() as opened:
        source = opened.enter_context(closing(open_node(node)))
        stores: list[StateStore] = [StateFiles(node)]
        if (node / "celldb").is_dir():
            celldb = opened.enter_context(closing(CellDb(node / "celldb")))
            stores.insert(0, statefile.CellDbStates(celldb))
        processes = start_workers(Origin(node), lake, PATIENT, workers)
        return ingest_state(
            source,
            stores,
            lake,
            PATIENT,
            at=at,
            accounts="active" if only_active else "all",
            workers=opened.enter_context(processes),
        )


def read_newest(lake: Path, *, status: str = "account_status != 'nonexist'") -> dict[str, Any]:
    """Return newest states and contracts, without the moment, and with which cells are known."""
    found: dict[str, Any] = {}
    newest = "qualify row_number() over (partition by workchain, account order by {}) = 1"
    states = f"from account_states {newest.format('mc_seqno desc, block_seqno desc')}"
    newest = newest.format("mc_seqno desc")
    whole = ("account_states", "state_cells", "libraries", "config_params")
    names = (*whole, *(table.name for table in HISTORY_TABLES))
    with connect(open_snapshot(lake), statement=" ".join(names)) as lake_sql:
        found["account_states"] = lake_sql.execute(
            f"select * exclude ({', '.join((*OF_THE_MOMENT, 'shard', 'block_seqno'))}), "  # noqa: S608
            "account_states.hash in (select hash from state_cells) "
            "and coalesce(code_hash in (select hash from state_cells), true) "
            "and coalesce(data_hash in (select hash from state_cells), true) "
            f"from ({states}) as account_states where {status} order by all"
        ).fetchall()
        for table in HISTORY_TABLES:
            omitted = ", ".join(name for name in OF_THE_MOMENT if name in table.names)
            found[table.name] = lake_sql.execute(
                f"select * exclude ({omitted}) from (from {table.name} {newest}) "  # noqa: S608
                "semi join (select workchain, account from "
                f"({states}) where account_status = 'active') "
                "using (workchain, account) "
                "order by all"
            ).fetchall()
        found["libraries"] = lake_sql.execute(
            "select hash, publishers from (from libraries "
            "qualify row_number() over (partition by hash order by mc_seqno desc) = 1) "
            "where present order by all"
        ).fetchall()
        found["configuration"] = lake_sql.execute(
            "select param, hash from config_params "
            "qualify row_number() over (partition by param order by mc_seqno desc) = 1 order by all"
        ).fetchall()
        missing = "where child not in (select hash from state_cells)"
        found["absent cells"] = lake_sql.execute(
            f"select count(*) from (select unnest(refs) as child from state_cells) {missing}"  # noqa: S608
        ).fetchall()
    return found


def digest_files(lake: Path) -> dict[str, str]:
    files = tree_digest(lake)
    return {path: each for path, each in files.items() if path.endswith((".parquet", ".json"))}


@pytest.fixture(scope="module")
def late_lakes(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Lakes that begin in the middle, without a baseline."""
    lakes = {first: tmp_path_factory.mktemp("late") / "lake" for first in FIRST_BLOCKS}
    for first, lake in lakes.items():
        ingest_node(demo_node, lake, PATIENT, first)
    return lakes


@pytest.fixture
def late_lake(late_lakes: dict[int, Path], tmp_path: Path) -> Path:
    """A copy of one of them, which begins with block 100."""
    return Path(shutil.copytree(late_lakes[100], tmp_path / "lake"))


@pytest.fixture(scope="module")
def expected(demo_lake: Path) -> dict[str, Any]:
    """What the lake of the whole chain knows of every account."""
    return read_newest(demo_lake)


@pytest.mark.parametrize("first", FIRST_BLOCKS)
def test_all_accounts_are_known_as_by_the_whole_chain(
    demo_node: Path,
    expected: dict[str, Any],
    late_lakes: dict[int, Path],
    tmp_path: Path,
    first: int,
) -> None:
    lake = Path(shutil.copytree(late_lakes[first], tmp_path / "lake"))
    assert read_newest(lake) != expected
    report = bring_state(demo_node, lake)
    assert (report.mc_seqno, report.state_mc_seqno, report.is_new) == (first - 1, first - 1, True)
    assert read_newest(lake) == expected
    assert verify_lake(lake).damage == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("network", "first", "at"),
    [("main", 300, 600), ("main", 700, 1200), ("main", 1500, 1600), ("celldb-v2", 400, 500)],
)
def test_genuine_networks_are_known_as_by_the_whole_chain(
    genuine: Callable[[str], tuple[Path, Path]], tmp_path: Path, network: str, first: int, at: int
) -> None:
    node, _facts = genuine(network)
    ingest_node(node, tmp_path / "whole", PATIENT, 1)
    ingest_node(node, tmp_path / "late", PATIENT, first)
    lakes = [tmp_path / name for name in ("by-files", "by-parts", "later")]
    for lake in lakes:
        shutil.copytree(tmp_path / "late", lake)
    bring_state(node, tmp_path / "late")
    expected = read_newest(tmp_path / "whole")
    assert read_newest(tmp_path / "late") == expected
    for lake, split in zip(lakes, (None, SPLITS[0]), strict=False):
        write_states(node, tmp_path / f"{lake.name}-db", first - 1, split)
        bring_state(tmp_path / f"{lake.name}-db", lake)
        assert read_newest(lake) == expected
    assert digest_files(lakes[0]) == digest_files(tmp_path / "late")
    bring_state(node, lakes[2], at=at)
    # What earlier states had, of accounts that were touched in between, stays unknown.
    assert read_newest(lakes[2]) | {"absent cells": []} == expected | {"absent cells": []}


def test_a_later_state_gives_the_accounts_untouched_until_then(
    demo_node: Path, expected: dict[str, Any], late_lake: Path
) -> None:
    report = bring_state(demo_node, late_lake, at=130)
    assert (report.mc_seqno, report.state_mc_seqno) == (99, 130)
    ours, theirs = read_newest(late_lake), expected
    # What earlier states had, of accounts that were touched in between, stays unknown.
    assert ours | {"absent cells": []} == theirs | {"absent cells": []}
    both = (
        "select count(*) from account_states as old semi join (from account_states "
        "where mc_seqno between 100 and 130) as new using (workchain, account) "
        "where old.mc_seqno = 99"
    )
    assert ask(late_lake, both) == [(0,)]


def test_active_accounts_alone(demo_node: Path, demo_lake: Path, late_lake: Path) -> None:
    bring_state(demo_node, late_lake, only_active=True)
    active = "account_status = 'active'"
    assert read_newest(late_lake, status=active) == read_newest(demo_lake, status=active)
    statuses = "select distinct account_status from account_states where mc_seqno = 99"
    assert ask(late_lake, statuses) == [("active",)]
    assert not open_snapshot(late_lake).has_every_account(LAST)


def test_a_second_run_changes_nothing(demo_node: Path, late_lake: Path) -> None:
    bring_state(demo_node, late_lake)
    before = digest_files(late_lake)
    assert not bring_state(demo_node, late_lake).is_new
    assert digest_files(late_lake) == before
    with pytest.raises(SourceError, match="already has a baseline"):
        bring_state(demo_node, late_lake, at=120)


def test_blocks_before_the_baseline_can_be_added(
    demo_node: Path, expected: dict[str, Any], late_lake: Path
) -> None:
    bring_state(demo_node, late_lake)
    rebuild_index(late_lake)
    ingest_node(demo_node, late_lake, PATIENT, 80, 99)
    assert read_newest(late_lake) == expected
    rows = ask(
        late_lake, "select workchain, account, count(*) from transactions group by all order by all"
    )
    for _ in range(2):
        segments = open_segments(open_snapshot(late_lake), PATIENT.lake)
        assert segments is not None
        for workchain, account, count in rows:
            lists = segments.list_account((workchain, account))
            assert sum(len(listed.rows) for listed in lists) == count
        rebuild_index(late_lake)


def test_a_pruned_lake_gets_the_accounts_from_before_it(
    demo_node: Path, expected: dict[str, Any], late_lake: Path, tmp_path: Path
) -> None:
    """What pruned blocks had touched is known from the baseline, too, with its contracts."""
    prune_lake(late_lake, 150, PATIENT.lake)
    pruned = Path(shutil.copytree(late_lake, tmp_path / "pruned"))
    again = Path(shutil.copytree(late_lake, tmp_path / "again"))
    assert read_newest(late_lake) != expected
    report = bring_state(demo_node, late_lake)
    assert (report.mc_seqno, report.state_mc_seqno) == (149, 149)
    assert read_newest(late_lake) == expected
    assert verify_lake(late_lake).damage == []
    ((count, accounts),) = ask(
        late_lake,
        """
        select count(*), count(distinct address)
        from balances_at((select ton_time(max(utime)) from account_states where mc_seqno = 149))
        where asset is null
        """,
    )
    assert count == accounts, "kept rows of block 149 count once"
    assert read_state(late_lake).known_ranges == ((100, LAST),)
    bring_state(demo_node, again, at=160)
    ours, theirs = read_newest(again), expected
    assert ours | {"absent cells": []} == theirs | {"absent cells": []}
    with pytest.raises(SourceError, match=r"must be 149, .* up to 238"):
        bring_state(demo_node, Path(shutil.copytree(pruned, tmp_path / "third")), at=120)
    ingest_node(demo_node, tmp_path / "whole", PATIENT, 1)
    prune_lake(tmp_path / "whole", 150, PATIENT.lake)
    with pytest.raises(SourceError, match=r"block 1 .blocks up to 149 were pruned"):
        bring_state(demo_node, tmp_path / "whole")


def test_a_lake_that_needs_none_and_a_state_that_is_not_there(
    demo_node: Path, demo_lake: Path, late_lake: Path
) -> None:
    with pytest.raises(SourceError, match="begins with block 1"):
        bring_state(demo_node, demo_lake)
    for at in (98, LAST + 1):
        with pytest.raises(SourceError, match=f"after masterchain block {at} cannot be used"):
            bring_state(demo_node, late_lake, at=at)


@pytest.fixture(scope="module")
def file_node(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node without celldb, with persistent states after block 99."""
    target = tmp_path_factory.mktemp("file-node") / "db"
    assert len(write_states(demo_node, target, 99)) > 1
    return target


def test_persistent_states_give_the_same_bytes(
    demo_node: Path, file_node: Path, late_lakes: dict[int, Path], tmp_path: Path
) -> None:
    lakes = [Path(shutil.copytree(late_lakes[100], tmp_path / name)) for name in ("a", "b")]
    for node, lake in zip((demo_node, file_node), lakes, strict=True):
        assert bring_state(node, lake).is_new
    assert digest_files(lakes[0]) == digest_files(lakes[1])


@pytest.fixture(scope="module", params=SPLITS, ids=["proof-and-long-labels", "pruned-and-branches"])
def split_node(
    request: pytest.FixtureRequest, demo_node: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A node without celldb, with split persistent states after block 99."""
    target = tmp_path_factory.mktemp("split-node") / "db"
    assert len(write_states(demo_node, target, 99, request.param)) > 4
    return target


def test_split_states_give_the_same_rows(
    expected: dict[str, Any],
    split_node: Path,
    late_lake: Path,
    file_node: Path,
    named: NamedStates,
) -> None:
    assert bring_state(split_node, late_lake).is_new
    assert read_newest(late_lake) == expected

    def list_accounts(node: Path) -> list[Any]:
        found = read_rows(StateFiles(node), named)
        return [row for each in found for row in each.get("account_states", EMPTY).to_pylist()]

    assert list_accounts(file_node) == list_accounts(split_node)


def test_a_part_of_a_split_state_that_is_missing_or_another(
    split_node: Path, late_lake: Path, tmp_path: Path
) -> None:
    node = Path(shutil.copytree(split_node, tmp_path / "db"))
    one, other, *_ = sorted((node / "archive" / "states").glob("stateaccount_99_0_*"))
    one.write_bytes(other.read_bytes())
    with pytest.raises(
        SourceError, match=f"{one.name}: it does not contain the accounts with hash"
    ):
        bring_state(node, late_lake)
    one.unlink()
    with pytest.raises(SourceError, match=r"statesplit_99_0_\w+: it names accounts .* is missing"):
        bring_state(node, late_lake)


def read_rows(store: StateStore, named: NamedStates) -> list[dict[str, pa.Table]]:
    """Read the whole contents of a store for some states."""
    found: list[dict[str, pa.Table]] = []
    for each in named.states:
        with store.open(named, each) as opened:
            at = opened.top.describe(99)
            for part in opened.parts:
                for branch in cut_branches(part.store, part.accounts):
                    found += [
                        decode_accounts(*loaded, at, (), only_active=False)[1]
                        for loaded in load_branch(part.store, branch)
                    ]
            if opened.top.workchain == MASTERCHAIN:
                found.append(opened.top.decode_libraries(99, ()))
                found.append(opened.top.decode_config(named.key_seqno))
    return found


def try_to_read(
    store: StateStore, named: NamedStates
) -> tuple[list[dict[str, pa.Table]] | None, str]:
    """Return the result of ``read_rows``, or None and the error message."""
    try:
        return read_rows(store, named), ""
    except IngestError as error:
        return None, str(error)


@pytest.mark.parametrize("flips", FLIPS)
@pytest.mark.parametrize("split", [None, SPLITS[0]], ids=["whole", "split"])
def test_damage_of_a_state_file_never_becomes_a_row(
    demo_node: Path, named: NamedStates, tmp_path: Path, split: Split | None, flips: int
) -> None:
    luck = random.Random(SEED)  # noqa: S311 - a seed, no secret
    file_node = tmp_path / "db"
    write_states(demo_node, file_node, 99, split)
    files = sorted((file_node / "archive" / "states").glob("state*_99_*"))
    sound_rows = read_rows(StateFiles(file_node), named)
    refused = 0
    for _ in range(flips):
        path = luck.choice(files)
        sound = path.read_bytes()
        path.write_bytes(flip_any(sound, luck))
        # The checksum at the end is not needed: the hashes of all cells are computed.
        rows, said = try_to_read(StateFiles(file_node), named)
        path.write_bytes(sound)
        assert rows == sound_rows or path.name in said
        refused += rows is None
    assert refused > flips * 0.9


@pytest.mark.parametrize("flips", FLIPS)
def test_damage_of_celldb_never_becomes_a_row(
    demo_node: Path, named: NamedStates, monkeypatch: pytest.MonkeyPatch, flips: int
) -> None:
    luck = random.Random(SEED)  # noqa: S311 - a seed, no secret
    read = Store.get_many

    def read_flipped(store: Store, keys: Iterable[bytes]) -> list[bytes | None]:
        values = read(store, keys)
        at = luck.randrange(len(values))
        if (value := values[at]) is not None and luck.random() < 0.1:
            values[at] = flip_any(value, luck)
        return values

    refused = 0
    with closing(CellDb(demo_node / "celldb")) as celldb:
        store = statefile.CellDbStates(celldb)
        sound_rows = read_rows(store, named)
        monkeypatch.setattr(Store, "get_many", read_flipped)
        for _ in range(flips):
            rows, said = try_to_read(store, named)
            # Counts of references are no part of a cell.
            assert rows == sound_rows or re.search("cell [0-9a-f]{64}", said)
            refused += rows is None
    assert refused > flips / 2


def test_a_cell_that_was_deleted_meanwhile_is_no_empty_account(
    demo_node: Path, late_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Store.get_many
    calls = iter(range(1_000_000))

    def read_some(store: Store, keys: Iterable[bytes]) -> list[bytes | None]:
        values = read(store, keys)
        return values if next(calls) < 12 else [None] * len(values)

    before = digest_files(late_lake)
    monkeypatch.setattr(Store, "get_many", read_some)
    with pytest.raises(SourceError, match=r"celldb: cell [0-9a-f]{64} is missing"):
        bring_state(demo_node, late_lake)
    assert digest_files(late_lake) == before


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the accounts of the demo node into several parts."""
    cut_small(monkeypatch.setattr)


def cut_small(set_to: Callable[[object, str, int], None]) -> None:
    set_to(wholestate, "BRANCH_ACCOUNTS", 8)
    set_to(wholestate, "_SAMPLED", 4)


@pytest.mark.usefixtures("small_parts")
def test_a_run_goes_on_where_one_was_stopped(
    demo_node: Path, late_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, whole = 130, Path(shutil.copytree(late_lake, tmp_path / "whole"))
    bring_state(demo_node, whole, at=at)
    decode = StateReader._decode
    begun: list[int] = []

    def decode_some(reader: StateReader, task: StateTask, store: PackedCells) -> Any:
        begun.append(task.number)
        if len(begun) == 4:
            raise SourceError("the node went away")
        return decode(reader, task, store)

    monkeypatch.setattr(StateReader, "_decode", decode_some)
    with pytest.raises(SourceError, match="the node went away"):
        bring_state(demo_node, late_lake, at=at)
    assert begun == begun[:1] + begun[1:4]
    (folder,) = (late_lake / "_log").glob(".state-*/")
    # A damaged part is written again.
    part = next(path for path in sorted(folder.iterdir()) if path.suffix != ".json")
    part.write_bytes(part.read_bytes()[:-1])
    done, begun[:] = begun[:3], [-1] * 4
    bring_state(demo_node, late_lake, at=at)
    again = set(begun[4:])
    assert len(again & set(done)) == 1
    assert digest_files(late_lake) == digest_files(whole)
    assert not folder.exists()


def is_delta(path: str) -> bool:
    return path == POSITION_FILE or f"/{FOLDER}/" in path


KILLED = """
import sys
from pathlib import Path
from tests.ingest.run import test_baseline
test_baseline.cut_small(setattr)
if __name__ == "__main__":
    test_baseline.bring_state(Path(sys.argv[1]), Path(sys.argv[2]), workers=int(sys.argv[3]))
"""


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kills", KILLS)
def test_any_workers_and_the_same_command_after_a_kill_give_the_same_bytes(
    demo_node: Path, late_lake: Path, tmp_path: Path, expected: dict[str, Any], kills: int
) -> None:
    """Any process may be killed: the command's, or a worker while it reads or detects."""
    alone = Path(shutil.copytree(late_lake, tmp_path / "alone"))
    bring_state(demo_node, alone)
    assert read_newest(alone) == expected
    assert len(list_baseline_files(read_state(alone), "account_states")) > 4
    luck = random.Random(SEED)  # noqa: S311 - a seed, no secret
    run = [sys.executable, "-c", KILLED, str(demo_node)]
    whole = Path(shutil.copytree(late_lake, tmp_path / "whole"))
    began = time.monotonic()
    subprocess.run([*run, str(whole), "2"], check=True, cwd=ROOT)
    took_s = time.monotonic() - began
    digests = digest_files(whole)
    assert digest_files(alone) == digests
    for number in range(kills):
        lake = Path(shutil.copytree(late_lake, tmp_path / f"killed-{number}"))
        workers = 2 - number % 2
        process = subprocess.Popen(
            [*run, str(lake), str(workers)], cwd=ROOT, stderr=subprocess.DEVNULL
        )
        time.sleep(luck.uniform(0.3, 1) * took_s)
        with suppress(psutil.NoSuchProcess):
            luck.choice(list_family(process.pid)).kill()
        process.wait()
        assert verify_lake(lake).damage == []
        bring_state(demo_node, lake)
        found = verify_lake(lake)  # Delta logs, too: a kill before a publication joins two versions
        assert found.damage == []
        committed = digest_files(lake)
        skipped = {*found.orphans, *filter(is_delta, committed.keys() | digests)}
        assert {path: each for path, each in committed.items() if path not in skipped} == {
            path: each for path, each in digests.items() if path not in skipped
        }
        shutil.rmtree(lake)


NEWEST, BORDER = 238, 122
SETTINGS = compose(ingest={"mc_blocks_per_commit": 25, "mc_blocks_per_chunk": 25})
CUT = ("state_cells", "interfaces", "action_ranges")
"""Tables whose rows depend on how blocks are cut into commits."""

OF_TRACES = {
    *("transactions", "messages", "transaction_traces", "message_bodies", "account_states")
}


def bring(node: Path, lake: Path, first: int, last: int) -> Any:
    return ingest_node(node, lake, SETTINGS, first, last)


@pytest.fixture(scope="module")
def begun(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo network up to a block at which traces are open."""
    lake = tmp_path_factory.mktemp("begun") / "lake"
    bring(demo_node, lake, 1, 127)
    return lake


def test_it_follows_on(demo_node: Path, begun: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(begun, tmp_path / "lake")
    prune_lake(lake, BORDER, SETTINGS.lake)
    report = bring(demo_node, lake, 1, NEWEST)
    assert not report.holes
    state = read_state(lake)
    assert state.ranges == ((BORDER, NEWEST),)
    assert state.pruned == ((1, BORDER - 1),)
    whole = shutil.copytree(begun, tmp_path / "whole")
    bring(demo_node, whole, 1, NEWEST)
    prune_lake(whole, BORDER, SETTINGS.lake)
    found, expected = (read_all(each, *CUT) for each in (lake, whole))
    for name, rows in expected.items():
        if name in OF_TRACES:  # traces that ended meanwhile were open when the lake was pruned
            assert set(map(repr, rows)) <= set(map(repr, found[name])), name
        else:
            assert found[name] == rows, name
    prune_lake(lake, BORDER + 8, SETTINGS.lake)
    prune_lake(whole, BORDER + 8, SETTINGS.lake)
    assert read_all(lake, *CUT) == read_all(whole, *CUT)
    assert not verify_lake(lake).damage
    assert [*upgrade_lake(lake, SETTINGS)] == []


def test_a_trace_without_beginning_goes_with_its_blocks(demo_node: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    bring(demo_node, lake, 123, NEWEST)
    broken = "select count(*) from traces where state = 'broken'"
    assert ask(lake, broken) != [(0,)]
    prune_lake(lake, 180, SETTINGS.lake)
    assert ask(lake, broken) == [(0,)]
    assert ask(lake, "select count(*) from open_edges") == [(0,)]
    left = "select hash from transactions where mc_seqno < 180 order by all"
    crossing = """
        select hash from transaction_traces join traces using (trace_id)
        where mc_seqno < 180 and mc_seqno_end >= 180
        order by all
    """
    assert ask(lake, left) == ask(lake, crossing)
    assert not verify_lake(lake).damage
