"""Every page: cells carry the name of their column, and a past block is kept by links."""

from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.explorer.page import Walker
from tonlake.api.explorer.frame import keep_past, label_cells, read_seqno
from tonlake.api.request.call import Arguments
from tonlake.api.request.snapshot import KEPT_PASTS, SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.lake.log.ranges import cut_ranges
from tonlake.lake.schema import TABLES
from tonlake.queries.reader import Reader

HEAD = (
    '<thead><tr><th scope="col">Account</th><th scope="col" class="number">Balance</th>'
    '<th scope="col"><span class="quiet">As a bar</span></th></tr></thead>'
)


def _make_table(rows: str) -> str:
    return f"<p>before <td> it</p><table>\n{HEAD}\n<tbody>{rows}</tbody>\n</table><table></table>"


def test_cells_behind_the_first_are_labelled() -> None:
    page = _make_table(
        '<tr><td>a</td><td class="number">1</td><td><svg/></td></tr>\n'
        '<tr><th scope="row">b</th><td>2</td><td></td></tr>'
    )
    assert label_cells(page) == _make_table(
        '<tr><td>a</td><td class="number" data-label="Balance">1</td><td><svg/></td></tr>\n'
        '<tr><th scope="row">b</th><td data-label="Balance">2</td><td></td></tr>'
    )


def test_labels_and_tables_of_other_forms_are_kept() -> None:
    page = _make_table('<tr><td>a</td><td data-label="Own">1</td><td>2</td><td>no column</td></tr>')
    assert label_cells(page) == page
    assert label_cells("<table><tr><td>a</td><td>b</td></tr></table>") == (
        "<table><tr><td>a</td><td>b</td></tr></table>"
    )


AT = 120
SEQNOS = ("mc_seqno", "mc_seqno_end", "first_mc_seqno")
BEFORE, AFTER = "/block/-1:8000000000000000:100", "/block/-1:8000000000000000:130"


def test_no_row_of_any_table_is_later(demo_lake: Path) -> None:
    holder = SnapshotHolder(demo_lake, Settings())
    past, now = holder.reader(mc_seqno=AT), holder.reader()
    assert past.snapshot.last_mc_seqno == AT < now.snapshot.last_mc_seqno
    for name, table in TABLES.items():
        column = next(each for each in SEQNOS if each in table.names)
        view = "state_cell_copies" if name == "state_cells" else name
        every, earlier = _count(past, view, column)
        assert every == earlier == _count(now, view, column)[1], name
    holder.close()


def _count(reader: Reader, view: str, column: str) -> tuple[int, int]:
    """Return all rows of a view, and those up to the block."""
    statement = f"select count(*), count(*) filter ({column} <= $at) from {view}"  # noqa: S608 - names of the schema
    row = reader.ask(statement, {"at": AT}).to_pylist()[0]
    every, earlier = row.values()
    return every, earlier


def test_pages_have_no_cursor_of_the_lists_in_them(client: TestClient[Any]) -> None:
    for path in ("/", "/?full=1", f"/account/-1:{'3' * 64}"):
        assert "X-Tonlake-Cursor" not in client.head(path).headers


def test_an_account_is_as_it_was(client: TestClient[Any], walk: Walker) -> None:
    elector = f"-1:{'3' * 64}"
    answer = client.get("/api/v2/getAddressInformation", params={"address": elector, "seqno": AT})
    balance = int(answer.json()["result"]["balance"])
    page = walk(f"/account/{elector}?seqno={AT}")
    assert f"{balance / 1e9:,.9f}".rstrip("0").rstrip(".") in page.words
    assert f"As of masterchain block {AT}" in page.words


def test_later_blocks_are_not_there_yet(walk: Walker) -> None:
    assert "Root hash" in walk(f"{BEFORE}?seqno={AT}").words
    page = walk(f"{AFTER}?seqno={AT}", 404)
    assert f"covers 1..{AT}" in page.words
    assert f"{AFTER}#newest" in page.links


def test_links_and_forms_stay_and_one_leads_back(walk: Walker) -> None:
    page = walk(f"/blocks?seqno={AT}")
    blocks = [link for link in page.links if link.startswith("/block/")]
    assert blocks
    assert all(link.endswith(f"?seqno={AT}") for link in blocks)
    assert "/blocks#newest" in page.links
    hidden = [attrs for tag, attrs in page.tags if tag == "input" and attrs.get("type") == "hidden"]
    assert {"type": "hidden", "name": "seqno", "value": str(AT)} in hidden
    assert not any("data-live" in attrs for _tag, attrs in page.tags)


def test_pages_without_a_past_say_so(walk: Walker) -> None:
    assert "This page has no past" in walk(f"/lake?seqno={AT}").words


@pytest.mark.parametrize(("text", "status"), [("x", 422), ("0", 422), ("99999", 404), ("", 200)])
def test_odd_blocks_are_answered_in_words(walk: Walker, text: str, status: int) -> None:
    page = walk(f"/?seqno={text}", status)
    assert status == 200 or "masterchain block" in page.words


def test_numbers_may_have_commas() -> None:
    assert read_seqno(Arguments([("seqno", "1,234")])) == 1234
    assert read_seqno(Arguments([])) is None


def test_only_links_of_pages_are_changed() -> None:
    text = (
        '<a href="/account/x?a=1#lists"></a><a href="/docs"></a>'
        '<p>href="/x"</p><a href="/b#newest"></a>'
    )
    assert keep_past(text, 7) == (
        '<a href="/account/x?a=1&amp;seqno=7#lists"></a><a href="/docs"></a>'
        '<p>href="/x"</p><a href="/b#newest"></a>'
    )


def test_few_past_blocks_are_kept_open(demo_lake: Path) -> None:
    holder = SnapshotHolder(demo_lake, Settings())
    for seqno in range(1, KEPT_PASTS + 5):
        assert holder.reader(mc_seqno=seqno).snapshot.bound == seqno
    assert holder._pasts.weight == KEPT_PASTS
    holder.close()


def test_ranges_are_cut() -> None:
    assert cut_ranges(((1, 5), (8, 20), (30, 40)), 9) == ((1, 5), (8, 9))


def test_pages_of_accounts_follow_signed_blocks(walk: Walker) -> None:
    for path, follows in (("/account/-1:" + "3" * 64, True), ("/", False)):
        (stream,) = [attrs["data-stream"] for tag, attrs in walk(path).tags if tag == "body"]
        assert ("&min_finality=confirmed" in (stream or "")) is follows
