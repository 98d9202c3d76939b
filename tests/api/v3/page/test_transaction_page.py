"""Pages written without structs equal those written from structs."""

from typing import Any

import msgspec
import pytest

from tonlake.api.request.call import Call
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.page import book
from tonlake.api.v3.page.transaction_page import (
    answer_transactions,
    read_records,
    write_transactions,
)
from tonlake.api.v3.resource import transaction
from tonlake.api.v3.route.trace import TracesQuery, _find_traces, _read_members, write_page

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")


@pytest.fixture(scope="module")
def keys(call: Call) -> list[dict[str, Any]]:
    """The keys of every transaction."""
    return call.reader.rows("v3/transaction_keys", limit=100_000)


def test_pages_written_and_rendered_are_equal(call: Call, keys: list[dict[str, Any]]) -> None:
    assert len(keys) > 1000
    written = msgspec.json.encode(write_transactions(call, keys))
    rendered = msgspec.json.encode(answer_transactions(call, keys))
    reader = call.reader
    assert ("index" in reader.answered_by) == (call.settings.lake.index_memory_rows > 0)
    assert msgspec.json.decode(written) == msgspec.json.decode(rendered)


def test_books_written_and_rendered_are_equal(
    call: Call, keys: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With domains, in both networks, of accounts never seen and of workchains of 32 bits."""
    rows = [record.row for record in read_records(call, keys)]
    known = sorted({(row["workchain"], row["account"]) for row in rows})
    names = {pair: f'"{at}".ton\u00e9' for at, pair in enumerate(known[::3])}
    monkeypatch.setattr(book, "find_domains", lambda _reader: names)
    asked = [*known, (0, bytes(32)), (-1, bytes(31) + b"\xfe"), (1 << 30, b"\xff" * 32)]
    for testnet in (True, False):
        of_network = msgspec.structs.replace(
            call,
            settings=msgspec.structs.replace(
                call.settings, http=msgspec.structs.replace(call.settings.http, testnet=testnet)
            ),
        )
        written = msgspec.json.encode(book.write_address_book(of_network, asked))
        with monkeypatch.context() as patched:
            patched.setattr(book, "NATIVE", None)
            assert msgspec.json.encode(book.write_address_book(of_network, asked)) == written
    assert book.write_address_book(msgspec.structs.replace(call, no_address_book=True), asked) == {}


def test_traces_are_the_same_without_the_extension(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where one in three is shown as one that is too large."""
    rows = _find_traces(call, TracesQuery(limit=1000, offset=0))
    members = _read_members(call, rows)
    assert max(map(len, members.values())) > 5
    for row in rows[::3]:
        del members[row["trace_id"]]
    written = write_page(call, rows, members)
    monkeypatch.setattr(transaction, "NATIVE", None)
    rendered = write_page(call, rows, members)
    assert msgspec.json.encode(written.traces) == msgspec.json.encode(rendered.traces)
    assert written.named == rendered.named
    assert len(written.named) > 1
