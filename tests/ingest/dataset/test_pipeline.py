"""The public data set gives the lake that its blocks give, but for what its form lacks."""

import shutil
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.dataset.generate import TABLES as GENERATED
from tests.ingest.dataset.generate import Row, write_rows
from tests.ingest.whole import ingest_node, read_table
from tests.lake.killed import run_killed
from tonlake.api.settings import Settings
from tonlake.ingest.dataset.files import FORM, TIMES, DataSet
from tonlake.ingest.dataset.pipeline import DayReport, ShardTops, ingest_days
from tonlake.ingest.decode.block.header import find_child, find_parent
from tonlake.ingest.errors import SourceError
from tonlake.lake.log.ranges import subtract_ranges
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import BLOCKS, SHARD_BLOCKS, TABLES

LACKING: dict[str, tuple[str, ...]] = {
    "blocks": (
        *("gen_software_version", "gen_software_capabilities"),
        *("state_root_hash", "boc_bytes"),
    ),
    "transactions": ("total_fees_extra_currencies", "credit_extra_currencies", "boc"),
    "messages": ("value_extra_currencies", "extra_flags", "destination_kind"),
    "account_states": (
        *("extra_currencies", "extra_currencies_hash", "library_hash", "fixed_prefix_length"),
        *("special_tick", "special_tock", "storage_cells", "storage_bits", "storage_last_paid"),
        *("storage_due_payment", "storage_last_trans_lt"),
    ),
}
"""Columns of ours that the data set does not determine: they are NULL, ``destination_kind`` only
where the destination is external. ``previous`` hashes of the first blocks of a lake are NULL, too.
"""

LACKING_TABLES = ("libraries", "queue_sizes", "block_proofs")
"""Tables of ours that stay empty. Of ``state_cells`` there are the cells of code and data."""

LAST, BORDER = 238, 121
"""The demo network's last masterchain block; the first of the second day where there are two."""

FEW = (101, 140)
"""The blocks around it of data sets that are changed."""

DAY_S = 86_400
BY_COMMIT = {"interfaces", "action_ranges", "state_cells", "shard_blocks", "open_edges"}
"""Tables that depend on the borders of commits, or that have only some of the node's rows."""


@pytest.fixture(scope="module")
def rows(demo_lake: Path) -> dict[str, list[Row]]:
    """The rows of the demo network as the data set has them; not to be changed."""
    return {table: list_rows(demo_lake) for table, (list_rows, _) in GENERATED.items()}


@pytest.fixture(scope="module")
def few(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Those of some blocks."""

    def is_chosen(row: Row) -> bool:
        return bool(FEW[0] <= row["mc_block_seqno"] <= FEW[1])

    found = {table: [*filter(is_chosen, rows[table])] for table in ("blocks", "transactions")}
    hashes = {row["hash"] for row in found["transactions"]}
    for table, name in (("messages", "tx_hash"), ("account_states", "last_trans_hash")):
        found[table] = [row for row in rows[table] if row[name] in hashes]
    return found


@pytest.fixture(scope="module")
def few_days(few: dict[str, list[Row]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of some blocks; not to be changed."""
    return write_changed(few, tmp_path_factory.mktemp("few"), len)


@pytest.fixture(scope="module")
def few_imported(few_days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of it, for reading."""
    lake = tmp_path_factory.mktemp("imported") / "lake"
    assert list_holes(bring(few_days, lake)) == {}
    return lake


@pytest.fixture(scope="module")
def imported(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the shared data set, for reading."""
    lake = tmp_path_factory.mktemp("imported") / "lake"
    (report,) = bring(shared / "data" / "dataset-demo", lake)
    assert report.ingest is not None
    assert (report.ingest.committed, report.ingest.holes) == ([f"1:{LAST}"], [])
    return lake


def bring(folder: Path, lake: Path) -> list[DayReport]:
    with closing(DataSet(folder)) as found:
        return list(ingest_days(found, sorted(found._files["blocks"]), lake, Settings()))


def list_holes(reports: list[DayReport]) -> dict[int, str]:
    holes = [hole for report in reports if report.ingest for hole in report.ingest.holes]
    return {hole.mc_seqno: f"{hole.kind}: {hole.reason}" for hole in holes}


def write_changed(rows: dict[str, list[Row]], folder: Path, change: Any) -> Path:
    """Write rows after a change of a copy of them."""
    copy = {table: [dict(row) for row in members] for table, members in rows.items()}
    change(copy)
    for table, members in copy.items():
        write_rows(folder, table, members)
    return folder


def index_rows(lake: Path, table: str, *, without: tuple[str, ...] = ()) -> dict[str, Row]:
    return {
        repr([row[name] for name in TABLES[table].key]): {
            name: value for name, value in row.items() if name not in without
        }
        for row in read_table(lake, table)
    }


def compare(node: Path, imported: Path, more: Mapping[str, tuple[str, ...]] = {}) -> None:
    """Compare all tables of two lakes, but for what the form lacks, and ``more`` columns."""
    for table in TABLES.values():
        name = table.name
        if name in LACKING_TABLES:
            assert name not in read_state(imported).by_table
            continue
        without = LACKING.get(name, ()) + more.get(name, ())
        theirs = index_rows(node, name, without=without)
        ours = index_rows(imported, name, without=without)
        if name in BY_COMMIT:
            assert ours.keys() <= theirs.keys() or name in {"interfaces", "action_ranges"}
            continue
        assert ours.keys() == theirs.keys(), name
        for key, row in ours.items():
            # The blocks before the first ones of the lake are unknown.
            known = {each for each in row if not (each.startswith("prev") and row[each] is None)}
            assert {each: row[each] for each in known} == {
                each: theirs[key][each] for each in known
            }, name


def test_the_rows_are_those_of_the_node(demo_lake: Path, imported: Path) -> None:
    compare(demo_lake, imported)
    tops = index_rows(demo_lake, "shard_blocks")
    unknown = [row for key, row in tops.items() if key not in index_rows(imported, "shard_blocks")]
    assert all(row["seqno"] == 0 for row in unknown), "only the zero state of a shard is unknown"
    for name in LACKING["blocks"]:
        assert {row[name] for row in read_table(imported, "blocks")} == {None}
    assert verify_lake(imported).damage == []


def test_its_origin_is_recorded(imported: Path) -> None:
    assert read_state(imported).reported_ranges == ((1, LAST),)
    assert verify_lake(imported).reported == ((1, LAST),)


def test_what_is_there_is_skipped(dataset: Path, imported: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(imported, tmp_path / "lake")
    (report,) = bring(dataset, lake)
    assert report.ingest is not None
    assert (report.ingest.commits, report.ingest.skipped) == (0, [f"1:{LAST}"])


OWNER = {"messages": "tx_hash", "transactions": "hash", "account_states": "last_trans_hash"}
"""The column with the hash of a row's transaction."""


def cut_at_midnight(copy: dict[str, list[Row]]) -> None:
    """Move all times: ``BORDER`` begins the second day, its shard blocks are ten seconds older."""
    (head,) = (row for row in copy["blocks"] if at_block(row) and row["workchain"] == -1)
    lag = DAY_S - head["gen_utime"] % DAY_S
    older = {row["hash"] for row in filter(at_block, copy["transactions"]) if not is_master(row)}
    assert older
    for table, column in TIMES.items():
        for row in copy[table]:
            is_older = row[OWNER[table]] in older if table in OWNER else is_shard_block(row)
            row[column] += lag - 10 * is_older


def at_block(row: Row, block: int = BORDER) -> bool:
    return bool(row["mc_block_seqno"] == block)


def is_master(row: Row) -> bool:
    return bool(row["block_workchain"] == -1)


def is_shard_block(row: Row, block: int = BORDER) -> bool:
    return at_block(row, block) and row["workchain"] != -1


@pytest.fixture
def two_days(few: dict[str, list[Row]], tmp_path: Path) -> Path:
    return write_changed(few, tmp_path / "two", cut_at_midnight)


def test_blocks_of_two_days_are_whole(two_days: Path, few_imported: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    reports = bring(two_days, lake)
    assert len(reports) == 2
    assert list_holes(reports) == {}
    assert read_state(lake).ranges == (FEW,)
    for table in ("transactions", "messages", "account_states", "traces"):
        assert index_rows(lake, table).keys() == index_rows(few_imported, table).keys()


def test_the_next_day_shows_what_the_end_of_a_day_lacks(
    few: dict[str, list[Row]], two_days: Path, tmp_path: Path
) -> None:
    def spoil(copy: dict[str, list[Row]]) -> None:
        cut_at_midnight(copy)
        drop_without_trace(copy, 118)

    first, _ = bring(write_changed(few, tmp_path / "flawed", spoil), tmp_path / "lake")
    assert list(list_holes([first])) == [117, 118, 119, 120]
    assert list_holes(bring(two_days, tmp_path / "lake")) == {}
    assert read_state(tmp_path / "lake").ranges == (FEW,)


def test_a_day_that_is_missing_is_named(two_days: Path, tmp_path: Path) -> None:
    days = sorted(path.name for path in (two_days / "messages").iterdir())
    shutil.rmtree(two_days / "messages" / days[0])
    first, second = bring(two_days, tmp_path / "lake")
    assert (first.ingest, first.lacking) == (None, ["messages"])
    assert second.ingest is not None
    assert second.ingest.committed


def test_without_the_day_before_the_first_blocks_are_holes(
    few: dict[str, list[Row]], two_days: Path, tmp_path: Path
) -> None:
    later = write_changed(few, tmp_path / "later", cut_at_midnight)
    day = min(path.name for path in (later / "blocks").iterdir())
    for table in FORM:
        shutil.rmtree(later / table / day)
    holes = list_holes(bring(later, tmp_path / "lake"))
    assert set(holes.values()) == {f"RowsFlawed: the data set lacks the blocks of {day[5:]}"}
    assert list(holes) == [BORDER, BORDER + 1]
    assert list_holes(bring(two_days, tmp_path / "lake")) == {}
    assert read_state(tmp_path / "lake").ranges == (FEW,)


def test_rows_that_come_twice_count_once(
    few: dict[str, list[Row]], few_imported: Path, tmp_path: Path
) -> None:
    def double(copy: dict[str, list[Row]]) -> None:
        for members in copy.values():
            members.extend(members[::2])

    reports = bring(write_changed(few, tmp_path / "twice", double), tmp_path / "lake")
    assert list_holes(reports) == {}
    for table in ("blocks", "transactions", "messages", "account_states", "actions"):
        assert index_rows(tmp_path / "lake", table) == index_rows(few_imported, table)


def drop_block(copy: dict[str, list[Row]], block: int) -> None:
    copy["blocks"] = [row for row in copy["blocks"] if row["mc_block_seqno"] != block]


def drop_shard_block(copy: dict[str, list[Row]], block: int) -> None:
    copy["blocks"].remove(next(row for row in copy["blocks"] if is_shard_block(row, block)))


def drop_without_trace(copy: dict[str, list[Row]], block: int) -> None:
    """Remove a shard block with all that is of it."""
    gone = next(row for row in copy["blocks"] if is_shard_block(row, block))
    names = ("workchain", "shard", "seqno"), ("block_workchain", "block_shard", "block_seqno")
    place, found = ([gone[name] for name in names[0]], copy["transactions"])
    hashes = {row["hash"] for row in found if [row[name] for name in names[1]] == place}
    copy["blocks"].remove(gone)
    for table, name in OWNER.items():
        copy[table] = [row for row in copy[table] if row[name] not in hashes]


def drop_transaction(copy: dict[str, list[Row]], block: int) -> None:
    copy["transactions"].remove(next(row for row in copy["transactions"] if at_block(row, block)))


def find_message(copy: dict[str, list[Row]], block: int) -> Row:
    rows = (row for row in copy["transactions"] if at_block(row, block))
    hashes = {row["hash"] for row in rows if row["descr"] == "ord"}
    return next(row for row in copy["messages"] if row["tx_hash"] in hashes)


def drop_message(copy: dict[str, list[Row]], block: int) -> None:
    copy["messages"].remove(find_message(copy, block))


def spoil_body(copy: dict[str, list[Row]], block: int) -> None:
    message = find_message(copy, block)
    message["body_boc"] = next(
        row["body_boc"] for row in copy["messages"] if row["body_hash"] != message["body_hash"]
    )


def break_body(copy: dict[str, list[Row]], block: int) -> None:
    find_message(copy, block)["body_boc"] = b"no bag"


def list_states(copy: dict[str, list[Row]], block: int) -> list[Row]:
    hashes = {row["hash"] for row in copy["transactions"] if at_block(row, block)}
    return [row for row in copy["account_states"] if row["last_trans_hash"] in hashes]


def drop_states(copy: dict[str, list[Row]], block: int) -> None:
    for row in list_states(copy, block):
        copy["account_states"].remove(row)


def spoil_data(copy: dict[str, list[Row]], block: int) -> None:
    for row in list_states(copy, block):
        row["data_boc"] = row["code_boc"]


def put(table: str, name: str, value: Any) -> Any:
    """Return a change of a value of the first row of a block."""

    def change(copy: dict[str, list[Row]], block: int) -> None:
        if table == "messages":
            find_message(copy, block)[name] = value
        elif table == "account_states":
            list_states(copy, block)[0][name] = value
        else:
            next(row for row in copy[table] if at_block(row, block))[name] = value

    return change


WRONG = "lacks a value or has a wrong one"

FLAWS = {
    103: (drop_without_trace, "lacks the blocks between 95 and 97"),
    112: (put("transactions", "account", "!!!"), WRONG),
    111: (put("blocks", "mc_block_seqno", 1 << 40), "has no masterchain block"),
    113: (put("blocks", "global_id", None), WRONG),
    114: (drop_transaction, "transactions, and there are"),
    115: (put("messages", "opcode", 1 << 32), WRONG),
    116: (drop_message, "in messages and"),
    121: (drop_block, "BlockNeverHad: the data set has no masterchain block"),
    123: (put("transactions", "compute_exit_code", -1 << 40), WRONG),
    125: (drop_shard_block, "lacks the blocks between 109 and 111"),
    128: (put("account_states", "balance", None), WRONG),
    129: (spoil_body, "its body has the hash"),
    132: (break_body, "its body is not a bag of cells"),
    134: (drop_states, "has no state"),
    135: (put("transactions", "account", f"0:{'0' * 31}:{'0' * 32}"), WRONG),
    136: (put("messages", "msg_hash", "A" * 44), WRONG),
    137: (put("messages", "direction", None), WRONG),
    138: (spoil_data, "its data has the hash"),
}
"""By block: changes, and what is said of the hole."""

BESIDE = {102, *range(104, 111), 118, 119, 120, 122, 124, 126}
"""Blocks that may have had the shard blocks that are missing."""


def test_a_flaw_is_a_hole_until_it_is_mended(
    few: dict[str, list[Row]], few_days: Path, few_imported: Path, tmp_path: Path
) -> None:
    def spoil(copy: dict[str, list[Row]]) -> None:
        for block, (flaw, _reason) in FLAWS.items():
            flaw(copy, block)

    lake = tmp_path / "lake"
    holes = list_holes(bring(write_changed(few, tmp_path / "flawed", spoil), lake))
    assert holes.keys() == FLAWS.keys() | BESIDE
    assert all(reason in holes[block] for block, (_flaw, reason) in FLAWS.items())
    whole = subtract_ranges([FEW], [(block, block) for block in sorted(holes)])
    assert read_state(lake).ranges == whole
    assert list_holes(bring(few_days, lake)) == {}
    assert read_state(lake).ranges == (FEW,)
    for table in ("transactions", "messages", "account_states", "traces", "wallets", "actions"):
        assert index_rows(lake, table) == index_rows(few_imported, table)


def test_a_time_that_is_none_is_a_flaw(few_days: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(few_days, tmp_path / "copy")
    (path,) = (copy / "transactions").glob("*/*.parquet")
    rows = pq.ParquetFile(path).read()
    times = pa.array([1 << 62, *rows["now"].to_pylist()[1:]])
    rewrite(path, lambda rows: rows.set_column(rows.column_names.index("now"), "now", times))
    holes = list_holes(bring(copy, tmp_path / "lake"))
    assert [*holes] == [rows["mc_block_seqno"][0].as_py()]
    assert WRONG in str(holes)


def test_a_masterchain_block_of_another_day_is_refused(
    few: dict[str, list[Row]], tmp_path: Path
) -> None:
    def add_far(copy: dict[str, list[Row]]) -> None:
        copy["blocks"].append(copy["blocks"][0] | {"seqno": 1 << 40, "mc_block_seqno": 1 << 40})

    far = write_changed(few, tmp_path / "far", add_far)
    with pytest.raises(SourceError, match=f"blocks 101 and {1 << 40} cannot be of one day"):
        bring(far, tmp_path / "lake")


def rewrite(path: Path, change: Any) -> None:
    pq.write_table(change(pq.ParquetFile(path).read()), path)


@pytest.mark.parametrize("table", FORM)
def test_a_column_of_another_name_or_type_is_refused(
    few_days: Path, tmp_path: Path, table: str
) -> None:
    copy = shutil.copytree(few_days, tmp_path / "copy")
    (path,) = (copy / table).glob("*/*.parquet")
    name = {"blocks": "seqno", "transactions": "lt", "messages": "value"}.get(table, "balance")
    rewrite(path, lambda rows: rows.rename_columns({name: "renamed"}))
    with pytest.raises(SourceError, match=rf"{path.name} .*it lacks {name}; it has .*renamed"):
        bring(copy, tmp_path / "lake")
    rewrite(
        path,
        lambda rows: rows.rename_columns({"renamed": name}).set_column(
            rows.column_names.index("renamed"), name, rows["renamed"].cast(pa.string())
        ),
    )
    with pytest.raises(SourceError, match=f"{name} is string and not int") as refused:
        bring(copy, tmp_path / "lake")
    assert "Traceback" not in str(refused.value)


ENCODINGS: dict[str, tuple[pa.DataType | None, ...]] = {
    "int": (pa.decimal128(38, 0),),
    "bool": (pa.bool_(),),
    "text": (None, pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()),
    "bytes": (None, pa.large_binary(), pa.binary_view()),
}
"""Other Arrow types for the values of each kind of column; None: a dictionary."""


def test_other_encodings_have_the_same_values(
    few: dict[str, list[Row]], few_imported: Path, tmp_path: Path
) -> None:
    def unsign(copy: dict[str, list[Row]]) -> None:
        for row in copy["messages"]:
            row["opcode"] = row["opcode"] and row["opcode"] % (1 << 32)

    copy = write_changed(few, tmp_path / "copy", unsign)

    def encode(rows: pa.Table, form: dict[str, str]) -> pa.Table:
        for at, (name, kind) in enumerate(form.items()):
            column, encoding = rows[name], ENCODINGS[kind][at % len(ENCODINGS[kind])]
            column = column.cast(encoding) if encoding else column.dictionary_encode()
            rows = rows.set_column(rows.column_names.index(name), name, column)
        return rows

    for table, form in FORM.items():
        for path in (copy / table).glob("*/*.parquet"):
            rewrite(path, partial(encode, form=form))
    assert list_holes(bring(copy, tmp_path / "lake")) == {}
    for made in TABLES.values():
        assert index_rows(tmp_path / "lake", made.name) == index_rows(few_imported, made.name)


@pytest.mark.parametrize("table", FORM)
def test_a_truncated_file_is_named(few_days: Path, tmp_path: Path, table: str) -> None:
    copy = shutil.copytree(few_days, tmp_path / "copy")
    (path,) = (copy / table).glob("*/*.parquet")
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(SourceError, match=rf"{table}/.*{path.name}"):
        bring(copy, tmp_path / "lake")
    assert list_holes(bring(few_days, tmp_path / "lake")) == {}


def test_a_table_that_is_missing_is_named(few_days: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(few_days, tmp_path / "copy")
    shutil.rmtree(copy / "messages")
    with pytest.raises(SourceError, match="has no day of messages"):
        bring(copy, tmp_path / "lake")


@pytest.mark.parametrize("point", ["file.renamed:3", "log.linked:1", "delta.written:9"])
def test_a_killed_ingest_goes_on(
    two_days: Path, few_imported: Path, tmp_path: Path, point: str
) -> None:
    lake = tmp_path / "lake"
    assert run_killed(lambda: bring(two_days, lake), point)
    sweep_orphans(lake, Settings().lake)
    assert not [path for path in (lake / "_log").glob(".tmp-*") if path.is_dir()]
    assert list_holes(bring(two_days, lake)) == {}
    assert verify_lake(lake).damage == []
    for table in ("blocks", "messages", "account_states", "actions"):
        assert index_rows(lake, table).keys() == index_rows(few_imported, table).keys()


def test_a_node_goes_on_where_the_data_set_ends(
    rows: dict[str, list[Row]], demo_node: Path, demo_lake: Path, tmp_path: Path
) -> None:
    def cut(copy: dict[str, list[Row]]) -> None:
        copy["blocks"] = [row for row in copy["blocks"] if row["mc_block_seqno"] < BORDER]

    lake = tmp_path / "lake"
    bring(write_changed(rows, tmp_path / "first", cut), lake)
    ingest_node(demo_node, lake, Settings(), 1, LAST, proofs=True)
    state = read_state(lake)
    assert (state.ranges, state.reported_ranges) == (((1, LAST),), ((1, BORDER - 1),))
    assert index_rows(lake, "actions") == index_rows(demo_lake, "actions")


WHOLE = -(1 << 63)
LEFT, RIGHT = 1 << 62, -(1 << 62)


@st.composite
def shards(draw: st.DrawFn) -> int:
    """A shard as a signed integer: up to 60 bits of prefix, a one, and zeroes."""
    bits = draw(st.integers(0, 60))
    number = (draw(st.integers(0, (1 << bits) - 1)) << 1 | 1) << (63 - bits)
    return number - (1 << 64) if number >> 63 else number


@given(shards(), st.booleans())
def test_a_child_has_its_parent(shard: int, right: bool) -> None:  # noqa: FBT001 - a value
    child = find_child(shard, right=right)
    assert find_parent(child) == shard
    assert (child & (1 << 64) - 1 > shard & (1 << 64) - 1) == right


def make_block(shard: int, seqno: int, **flags: Any) -> dict[str, Any]:
    hashes = {"root_hash": bytes([seqno]) * 32, "file_hash": bytes([seqno]) * 32}
    times = {"start_lt": seqno, "end_lt": seqno, "gen_utime": seqno}
    block = {"workchain": 0, "shard": shard, "seqno": seqno, **hashes, **times}
    return block | {"after_merge": False, "after_split": False} | flags


def add(
    tops: ShardTops, mc_seqno: int, *blocks: dict[str, Any]
) -> tuple[list[dict[str, Any]], set[Any]]:
    """Add blocks; return the rows of blocks, and shard and seqno of each top."""
    rows, shards = tops.add(mc_seqno, blocks)
    named = [dict(zip(SHARD_BLOCKS.names, row, strict=True)) for row in shards]
    assert {row["mc_seqno"] for row in named} <= {mc_seqno}
    found = [dict(zip(BLOCKS.names, row, strict=True)) for row in rows]
    return found, {(row["shard"], row["seqno"]) for row in named}


def test_shards_split_and_merge() -> None:
    tops = ShardTops()
    assert add(tops, 1, make_block(WHOLE, 7))[1] == {(WHOLE, 7)}
    assert add(tops, 2)[1] == {(WHOLE, 7)}
    split = [make_block(shard, 8, after_split=True) for shard in (LEFT, RIGHT)]
    rows, found = add(tops, 3, *split)
    assert found == {(LEFT, 8), (RIGHT, 8)}
    assert [(row["prev_shard"], row["prev_seqno"], row["prev_root_hash"]) for row in rows] == [
        (WHOLE, 7, bytes([7]) * 32)
    ] * 2
    assert add(tops, 4, make_block(LEFT, 9))[1] == {(LEFT, 9), (RIGHT, 8)}
    (row,), found = add(tops, 5, make_block(WHOLE, 10, after_merge=True))
    assert found == {(WHOLE, 10)}
    assert (row["prev_shard"], row["prev_seqno"]) == (LEFT, 9)
    assert (row["prev2_shard"], row["prev2_seqno"]) == (RIGHT, 8)


def test_what_was_before_is_unknown() -> None:
    tops = ShardTops()
    (row,), found = add(tops, 5, make_block(WHOLE, 10, after_merge=True))
    assert found == {(WHOLE, 10)}
    assert (row["prev_shard"], row["prev_seqno"], row["prev2_root_hash"]) == (LEFT, None, None)
    (row,), _ = add(ShardTops(), 5, make_block(WHOLE, 10))
    assert (row["prev_seqno"], row["prev_root_hash"]) == (9, None)


def test_a_missing_block_is_named() -> None:
    tops = ShardTops()
    add(tops, 1, make_block(LEFT, 7))
    with pytest.raises(ValueError, match=r"\(0,4000000000000000,9\) follows block 7 of its shard"):
        tops.add(2, [make_block(LEFT, 9)])
    assert add(tops, 3, make_block(LEFT, 10))[1] == {(LEFT, 10)}


def test_a_block_missing_before_a_merge_is_named() -> None:
    tops = ShardTops()
    add(tops, 1, make_block(LEFT, 7), make_block(RIGHT, 8))
    with pytest.raises(ValueError, match=r"\(0,8000000000000000,12\) follows block 8"):
        tops.add(2, [make_block(WHOLE, 12, after_merge=True)])


def test_after_a_hole_only_new_tops_are_known() -> None:
    tops = ShardTops()
    add(tops, 1, make_block(LEFT, 7), make_block(RIGHT, 7))
    assert add(tops, 3, make_block(LEFT, 9))[1] == {(LEFT, 9)}
