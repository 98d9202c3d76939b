"""Labels: the shipped ones, a user's file, and errors in one."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.duck.connection import connect, read_macros
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.duck.views import write_views
from tonlake.lake.errors import SettingsError
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings

ELECTOR = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"
RAW_ELECTOR = "-1:" + "3" * 64
OTHER = "0:" + "ab" * 32
HEADER = "address,label,category,source\n"


def load(settings: LakeSettings) -> duckdb.DuckDBPyConnection:
    """Return a database with the tables of labels and stablecoins."""
    connection = duckdb.connect()
    connection.execute(read_macros())
    connection.execute(render_labels(settings))
    return connection


def test_shipped_labels_have_sources() -> None:
    rows = load(LakeSettings()).execute("from labels").fetchall()
    assert (RAW_ELECTOR, -1, b"\x33" * 32, "Elector", "system") in [row[:5] for row in rows]
    assert all(None not in row for row in rows)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_of_labels(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"address": ELECTOR, "label": "It's ours", "category": None, "source": "me"},
        {"address": OTHER, "label": 'Käse, "quoted"', "category": "shop", "source": None},
    ]
    path = tmp_path / f"labels{suffix}"
    (pq.write_table if suffix == ".parquet" else pc.write_csv)(pa.Table.from_pylist(rows), path)
    connection = load(LakeSettings(labels=str(path)))
    found = connection.execute(
        "select address, label, category, source from labels where label not like 'pTON%'"
    ).fetchall()
    assert (RAW_ELECTOR, "It's ours", None, "me") in found
    assert (OTHER.upper(), 'Käse, "quoted"', "shop", None) in found
    assert len([row for row in found if row[0] == RAW_ELECTOR]) == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEADER + f"{ELECTOR[:-1]}E,x,,\n", "row 1: 'Ef8.*' is not an address, or its checksum"),
        (HEADER + f"{OTHER},x,,\nfoo,y,,\n", "row 2: 'foo' is not an address"),
        (HEADER + f"{OTHER},,,\n", "row 1 has no label"),
        (HEADER + f"{OTHER},x,,\n{OTHER.upper()},y,,\n", "row 2 labels .* a second time"),
        ("address,label\n", "has no column category; it needs address, label, category, source"),
        ("", "has no column address"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=f"labels.csv.*{fault}"):
        render_labels(LakeSettings(labels=str(path)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "not.parquet").write_text("no")
    pq.write_table(pa.table({"address": [OTHER]}), tmp_path / "few.parquet")
    (tmp_path / "latin.csv").write_bytes(HEADER.encode() + f"{OTHER},\xe4".encode("latin-1"))
    for name in ("missing.csv", "not.parquet", "few.parquet", "latin.csv"):
        with pytest.raises(SettingsError, match=name):
            render_labels(LakeSettings(labels=str(tmp_path / name)))


def test_stablecoins_are_addresses() -> None:
    connection = load(LakeSettings(stablecoins=f" {OTHER}, {ELECTOR}"))
    found = connection.execute("select address from stablecoins order by all").fetchall()
    assert found == [(RAW_ELECTOR,), (OTHER.upper(),)]
    assert load(LakeSettings(stablecoins="")).execute("from stablecoins").fetchall() == []
    with pytest.raises(SettingsError, match=r"\[lake\] stablecoins: 'USDT' is not an address"):
        render_labels(LakeSettings(stablecoins="USDT"))


def test_views_and_files_for_other_tools_have_them(tmp_path: Path) -> None:
    lake, path = tmp_path / "lake", tmp_path / "labels.csv"
    commit_rows(lake, 1, 5)
    account = "(select ton_address(workchain, account) from account_states limit 1)"
    statement = f"select any_value(label) from v_accounts where address = {account}"  # noqa: S608
    snapshot = open_snapshot(lake)
    address = connect(snapshot, statement=account).execute(f"select {account}").fetchall()[0][0]
    path.write_text(f"{HEADER}{address},Mine,,\n")
    settings = LakeSettings(labels=str(path))
    assert connect(snapshot, settings, statement=statement).execute(statement).fetchall() == [
        ("Mine",)
    ]
    catalog = str(write_views(lake, settings=settings)[1])
    with duckdb.connect(catalog, read_only=True) as connection:
        assert connection.execute(statement).fetchall() == [("Mine",)]
