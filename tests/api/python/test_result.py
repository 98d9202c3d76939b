"""Results in every form, and how they show accounts."""

import sys
from datetime import datetime
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import tonlake
from tonlake.api.python.result import Result

ELECTOR = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"


@pytest.fixture(scope="module")
def result(lake: tonlake.Lake) -> Result:
    return lake.sql("select workchain, account, lt, hash, time from transactions order by lt, hash")


@pytest.mark.usefixtures("pandas")
def test_every_form_has_the_same_rows(result: Result) -> None:
    rows = result.fetchall()
    assert list(result) == rows
    assert result.pl().rows() == rows
    assert [tuple(row) for row in result.arrow().to_pylist()] == [tuple(result.columns)] * len(rows)
    assert [bytes(each) for each in result.df()["hash"]] == [row[3] for row in rows]
    assert_frame_equal(pl.DataFrame(result), result.pl())
    with duckdb.connect() as connection:
        assert connection.from_arrow(result).fetchall() == rows
    assert isinstance(rows[0][4], datetime)
    lines = result.csv().splitlines()
    assert lines[0] == "workchain,account,lt,hash,time"
    assert len(lines) == len(rows) + 1


@pytest.mark.usefixtures("pandas")
def test_scaled_amounts_are_numbers_to_pandas(lake: tonlake.Lake) -> None:
    frame = lake.sql("select amount, amount_units::decimal(38, 0) as units from v_transfers").df()
    assert frame.select_dtypes("number").columns.to_list() == ["amount"]
    assert frame["amount"].sum() > 0
    assert isinstance(frame["units"][0], Decimal)


def test_accounts_are_shown_as_people_write_them(
    lake: tonlake.Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    found = lake.sql(
        "select -1 as workchain, $id::blob as account, -1 as tx_workchain, $id::blob as tx_account,"
        " -1 as owner_workchain, $id::blob as owner, $id::blob as hash, $raw as text,"
        " null::blob as nothing",
        id=b"3" * 32,
        raw="-1:" + "3" * 64,
    )
    found.show()
    shown = capsys.readouterr().out
    assert shown.count(ELECTOR) == 4
    assert shown.count(b"3".hex() * 32) == 1
    assert shown.endswith("\n1 row\n")
    assert found._repr_html_().count(f"<td>{ELECTOR}</td>") == 4
    assert ELECTOR not in str(found.fetchall())


def test_a_test_network_has_its_flag() -> None:
    table = pa.table({"workchain": [0, 0, 200], "account": [b"a" * 32, b"short", b"b" * 32]})
    plain, flagged = (Result(table, test_only=flag)._repr_html_() for flag in (False, True))
    assert ("EQ" in plain, "kQ" in plain, "kQ" in flagged) == (True, False, True)
    for shown in (plain, flagged):
        assert b"short".hex() in shown
        assert f"200:{b'b'.hex() * 32}".upper() in shown


def test_long_results_are_cut(lake: tonlake.Lake) -> None:
    found = lake.sql("select unnest(range(1000)) as n")
    assert repr(found).splitlines()[-1] == "1,000 rows, the first 20 shown"
    assert len(found) == 1000
    assert "<td>19</td>" in found._repr_html_()
    assert "<td>20</td>" not in found._repr_html_()


def test_a_notebook_has_the_rows_in_the_text(
    lake: tonlake.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich would show them there on its own, so that they are there twice."""
    monkeypatch.setattr("builtins.get_ipython", type("ZMQInteractiveShell", (), {}), raising=False)
    assert repr(lake.sql("select 7 as n")).split() == ["n", "7", "1", "row"]


def test_texts_of_the_chain_do_nothing_in_a_notebook(lake: tonlake.Lake) -> None:
    shown = lake.sql("select $text as text", text="<script>alert(1)</script>\u202e")._repr_html_()
    assert "<script>" not in shown
    assert "[U+202E]" in shown


@pytest.mark.parametrize(("library", "form"), [("polars", "pl"), ("pandas", "df")])
def test_frames_name_what_is_missing(
    result: Result, monkeypatch: pytest.MonkeyPatch, library: str, form: str
) -> None:
    """Polars and pandas are extras."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"needs {library}: pip install 'tonlake\[frames\]'"):
        getattr(result, form)()


def test_nothing_is_a_plain_zero(lake: tonlake.Lake) -> None:
    found = lake.sql("select ton_coins(0) as none, ton_coins(1) as some, null::decimal(9, 9) as no")
    assert str(found.fetchall()) == "[(Decimal('0'), Decimal('1E-9'), None)]"
    assert found.csv() == "none,some,no\n0,0.000000001,\n"
    assert repr(found).splitlines()[1].split() == ["0", "0.000000001", "NULL"]
