"""Histories, pages and located messages, compared with the demo node's transactions."""

import base64
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytoniq_core import Address, Builder, Cell
from pytoniq_core.boc import CellTypes
from pytoniq_core.tlb.transaction import ExternalOutMsgInfo, Transaction

from tests.api.v2.conftest import Asker
from tests.api.v3.conftest import to_base64
from tests.conftest import Facts
from tests.lake.opened import open_views
from tonlake.api.errors import NotDerived
from tonlake.api.v2.transaction import Page, cut_page, read_bags, render_message
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.codec import ENCRYPTED_OPCODE
from tonlake.lake.index.segment.declared import Record
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.reader import Reader

ZERO = base64.b64encode(bytes(32)).decode()
SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"


def _ids(page: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(tx["transaction_id"]["lt"], tx["transaction_id"]["hash"]) for tx in page]


def _expected_ids(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(str(row["lt"]), to_base64(row["hash"])) for row in rows]


def test_the_complete_history_of_every_account(ask: Asker, facts: Facts) -> None:
    total = 0
    for account in facts.accounts:
        workchain, digits = account["address"].split(":")
        page = ask("getTransactions", address=account["address"], limit=1000)
        expected = facts.history(int(workchain), digits)
        assert _ids(page) == _expected_ids(expected)
        total += len(page)
        for tx, row in zip(page, expected, strict=True):
            _check(tx, row, account["address"])
    assert total == len(facts.transactions)


def _check(tx: dict[str, Any], row: dict[str, Any], address: str) -> None:
    assert tx["@type"] == "ext.transaction"
    workchain, digits = address.split(":")
    assert tx["account"] == f"{workchain}:{digits.upper()}"
    assert tx["utime"] == row["now"]
    fees = int(row["total_fees"]) + sum(int(message["fwd_fee"]) for message in tx["out_msgs"])
    assert tx["fee"] == str(fees)
    assert int(tx["storage_fee"]) + int(tx["other_fee"]) == fees
    assert [message["hash"] for message in tx["out_msgs"]] == [
        to_base64(hash_) for hash_ in row["out_msg_hashes"]
    ]
    if row["in_msg_hash"] is None:
        assert "in_msg" not in tx
    else:
        assert tx["in_msg"]["hash"] == to_base64(row["in_msg_hash"])
        if row["in_msg_type"] == "ext_in":
            assert tx["in_msg"]["source"] == ""
            assert tx["in_msg"]["value"] == tx["in_msg"]["created_lt"] == "0"


def test_the_cell_of_a_transaction_has_the_same_fields(ask: Asker) -> None:
    """The data decodes, by another implementation, to what stands beside it."""
    for tx in ask("getTransactions", address=SHOP, limit=50):
        cell = Cell.one_from_boc(base64.b64decode(tx["data"]))
        assert base64.b64encode(cell.hash).decode() == tx["transaction_id"]["hash"]
        decoded = Transaction.deserialize(cell.begin_parse())
        sent = sum(getattr(message.info, "fwd_fee", 0) for message in decoded.out_msgs)
        assert tx["fee"] == str(decoded.total_fees.grams + sent)
        storage = decoded.description.storage_ph
        assert tx["storage_fee"] == str(storage.storage_fees_collected if storage else 0)
        for message, shown in zip(decoded.out_msgs, tx["out_msgs"], strict=True):
            assert shown["body_hash"] == base64.b64encode(message.body.hash).decode()
            assert shown["created_lt"] == str(message.info.created_lt)
            if isinstance(message.info, ExternalOutMsgInfo):
                assert (shown["destination"], shown["value"]) == ("", "0")
            else:
                assert shown["value"] == str(message.info.value.grams)
                assert shown["destination"] == message.info.dest.to_str()
                assert shown["source"] == message.info.src.to_str()


def test_pages_of_a_history_are_complete(ask: Asker, facts: Facts) -> None:
    limit, expected = 7, _expected_ids(facts.history(0, SHOP[2:]))
    found = _ids(ask("getTransactions", address=SHOP, limit=limit))
    while True:
        lt, tx_hash = found[-1]
        page = _ids(ask("getTransactions", address=SHOP, limit=limit, lt=lt, hash=tx_hash))
        assert page[0] == (lt, tx_hash), "a page begins with the transaction asked for"
        if len(page) == 1:
            break
        found += page[1:]
    assert found == expected


def test_std_names_the_next_page(ask: Asker, facts: Facts) -> None:
    expected = _expected_ids(facts.history(0, SHOP[2:]))
    found: list[tuple[str, str]] = []
    start: dict[str, str] = {}
    while True:
        page = ask("getTransactionsStd", address=SHOP, limit=30, **start)
        assert page["@type"] == "raw.transactions"
        found += _ids(page["transactions"])
        previous = page["previous_transaction_id"]
        if previous["lt"] == "0":
            assert previous["hash"] == ZERO
            break
        start = {"lt": previous["lt"], "hash": previous["hash"]}
    assert found == expected
    end = ask("getTransactionsStd", address=SHOP, lt=0, hash=ZERO)
    assert end["transactions"] == []
    assert end["previous_transaction_id"]["lt"] == "0"


def test_std_writes_addresses_as_objects(ask: Asker) -> None:
    page = ask("getTransactionsStd", address=SHOP, limit=20)["transactions"]
    plain = ask("getTransactions", address=SHOP, limit=20)
    for std, ext in zip(page, plain, strict=True):
        assert std["@type"] == "raw.transaction"
        assert "account" not in std
        for name in ("address", "utime", "data", "transaction_id", "fee", "storage_fee"):
            assert std[name] == ext[name]
        for left, right in zip(
            [std["in_msg"], *std["out_msgs"]], [ext["in_msg"], *ext["out_msgs"]], strict=True
        ):
            assert left["@type"] == "raw.message"
            assert "message" not in left
            for side in ("source", "destination"):
                assert left[side] == {"@type": "accountAddress", "account_address": right[side]}
            for name in left.keys() - {"@type", "source", "destination"}:
                assert left[name] == right[name]


def test_to_lt_is_exclusive(ask: Asker, facts: Facts) -> None:
    history = facts.history(0, SHOP[2:])
    for at in (0, 1, 5, 30):
        found = ask("getTransactions", address=SHOP, limit=100, to_lt=history[at]["lt"])
        assert _ids(found) == _expected_ids(history[:at])
    page = ask("getTransactionsStd", address=SHOP, limit=100, to_lt=history[3]["lt"])
    assert _ids(page["transactions"]) == _expected_ids(history[:3])
    assert page["previous_transaction_id"]["lt"] == str(history[3]["lt"])


def test_the_default_page_has_ten(ask: Asker) -> None:
    assert len(ask("getTransactions", address=SHOP)) == 10
    assert len(ask("getTransactions", address=SHOP, lt=0)) == 10


def test_hashes_are_read_in_every_form(ask: Asker, facts: Facts) -> None:
    row = facts.history(0, SHOP[2:])[4]
    raw = bytes.fromhex(row["hash"])
    forms = [row["hash"], row["hash"].upper(), to_base64(row["hash"])]
    forms += [base64.urlsafe_b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()[:43]]
    pages = [ask("getTransactions", address=SHOP, lt=row["lt"], hash=form) for form in forms]
    assert all(page == pages[0] for page in pages)
    assert pages[0][0]["transaction_id"]["hash"] == to_base64(row["hash"])


def test_rules_of_a_page(ask: Asker, facts: Facts) -> None:
    row = facts.history(0, SHOP[2:])[0]
    rules = [
        ({"limit": 0}, "limit should be positive"),
        ({"limit": 1001}, "limit should be less or equal 1000"),
        ({"lt": row["lt"]}, "lt and hash should be used together"),
        ({"hash": row["hash"]}, "lt and hash should be used together"),
        ({"hash": row["hash"], "lt": 0}, "lt and hash should be used together"),
        ({"hash": row["hash"], "lt": -1}, "lt should be non-negative"),
    ]
    for params, rule in rules:
        text = f"failed to validate request: {rule}"
        assert ask.refused("getTransactions", address=SHOP, **params) == (422, text)
    for name in ("limit", "lt", "to_lt", "archival"):
        text = f"failed to parse get request: failed to parse {name}"
        assert ask.refused("getTransactions", address=SHOP, **{name: "x"}) == (422, text)
    assert ask.refused("getTransactions", address=SHOP, lt=1, hash="zz") == (
        422,
        "failed to parse get request: invalid hash: 'zz'",
    )
    status, text = ask.refused("getTransactions", address=SHOP, lt=row["lt"] + 1, hash=row["hash"])
    assert status == 500
    assert "cannot locate transaction in block with specified logical time" in text
    status, text = ask.refused("getTransactions", address=SHOP, lt=row["lt"], hash="0" * 64)
    assert status == 500
    assert "transaction hash mismatch" in text


@pytest.mark.parametrize("word", ["true", "True", "y", "YES", "on", "1", "f", "no", "0", "OFF"])
def test_archival_takes_every_word(ask: Asker, word: str) -> None:
    assert len(ask("getTransactions", address=SHOP, limit=1, archival=word)) == 1


def test_messages_are_located_from_both_ends(ask: Asker, facts: Facts) -> None:
    tried = 0
    for account in facts.accounts:
        for tx in ask("getTransactions", address=account["address"], limit=1000):
            message = tx.get("in_msg")
            if message is None or not message["source"] or message["created_lt"] == "0":
                continue
            if message["source"].startswith("Ef8AAAAA"):
                continue  # the network itself sent it, outside of any transaction
            tried += 1
            if tried % 18:
                continue
            params = {
                "source": message["source"],
                "destination": message["destination"],
                "created_lt": message["created_lt"],
            }
            assert ask("tryLocateTx", **params) == tx
            assert ask("tryLocateResultTx", **params) == tx
            sender = ask("tryLocateSourceTx", **params)
            assert message["hash"] in [sent["hash"] for sent in sender["out_msgs"]]
            assert sender["address"]["account_address"] == message["source"]
    assert tried > 400


def test_an_unknown_message_is_not_located(ask: Asker) -> None:
    for method in ("tryLocateTx", "tryLocateResultTx", "tryLocateSourceTx"):
        params = {"source": SHOP, "destination": SHOP, "created_lt": 5}
        assert ask.refused(method, **params) == (404, "transaction was not found")
        text = "failed to validate request: created_lt should be non-negative"
        assert ask.refused(method, **params | {"created_lt": -5}) == (422, text)
        text = "failed to parse get request: Failed to parse ton_addr: 'q'"
        assert ask.refused(method, **params | {"source": "q"}) == (422, text)


def _record(lt: int, prev: int) -> Record:
    row = {
        "lt": lt,
        "hash": lt.to_bytes(32, "big"),
        "prev_trans_lt": prev,
        "prev_trans_hash": prev.to_bytes(32, "big"),
    }
    return Record(row, [], None, None)


@given(st.lists(st.integers(1, 1 << 60), unique=True, max_size=12), st.integers(1, 14), st.data())
def test_a_page_ends_at_the_first_hole(lts: list[int], limit: int, data: st.DataObject) -> None:
    lts.sort(reverse=True)
    records = [_record(lt, before) for lt, before in zip(lts, [*lts, 0][1:], strict=True)]
    whole = cut_page(records, limit)
    assert list(whole.records) == records[:limit]
    assert whole.next_lt == ([*lts, 0][limit] if len(lts) >= limit else 0)
    if len(records) > 2:
        gone = data.draw(st.integers(1, len(records) - 2))
        cut = cut_page(records[:gone] + records[gone + 1 :], limit)
        assert list(cut.records) == records[: min(gone, limit)]
        if gone <= limit:
            assert (cut.next_lt, cut.next_hash) == (lts[gone], records[gone].row["hash"])


def test_a_second_life_of_an_account_follows_the_first() -> None:
    records = [_record(9, 8), _record(8, 0), _record(5, 4), _record(4, 0)]
    assert list(cut_page(records, 10).records) == records
    assert cut_page(records, 2) == Page(records[:2], 5, records[2].row["hash"])


FIRST_BYTES, NEXT_BYTES = 123, 127


def _snake(opcode: int, text: bytes) -> Cell:
    parts = [text[:FIRST_BYTES]]
    parts += [text[at : at + NEXT_BYTES] for at in range(FIRST_BYTES, len(text), NEXT_BYTES)]
    cell: Cell | None = None
    for at in range(len(parts) - 1, -1, -1):
        builder = Builder()
        if at == 0:
            builder.store_uint(opcode, 32)
        builder.store_bytes(parts[at])
        if cell is not None:
            builder.store_ref(cell)
        cell = builder.end_cell()
    assert cell is not None
    return cell


def _row(body: Cell, **columns: object) -> dict[str, Any]:
    return {
        "msg_hash": bytes(32),
        "source_workchain": 0,
        "source": bytes(32),
        "destination_workchain": -1,
        "destination": b"\x11" * 32,
        "value": 5,
        "value_extra_currencies": None,
        "fwd_fee": 3,
        "created_lt": 9,
        "body_hash": body.hash,
        "body": body.to_boc(),
        "init_state": None,
        **columns,
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@given(st.text(max_size=600))
@example("")
@example("x" * FIRST_BYTES)
@example("x" * (FIRST_BYTES + 1))
@example("я" * 5000)
def test_a_comment_of_any_length_is_text(text: str) -> None:
    body = _snake(0, text.encode())
    found = render_message(_row(body))
    assert found["msg_data"] == {"@type": "msg.dataText", "text": _base64(text.encode())}
    assert found["message"] == text
    std = render_message(_row(body), is_std=True)
    assert std["msg_data"] == found["msg_data"]
    assert "message" not in std


@given(st.binary(max_size=300))
def test_a_comment_that_is_not_utf8_says_so(text: bytes) -> None:
    found = render_message(_row(_snake(0, text)))
    assert found["msg_data"]["text"] == _base64(text)
    try:
        assert found["message"] == text.decode()
        assert "message_decode_error" not in found
    except UnicodeDecodeError:
        assert found["message"] == ""
        assert found["message_decode_error"]


@given(st.binary(max_size=300))
def test_an_encrypted_comment_has_no_words(text: bytes) -> None:
    found = render_message(_row(_snake(ENCRYPTED_OPCODE, text)))
    assert found["msg_data"] == {"@type": "msg.dataEncryptedText", "text": _base64(text)}
    assert "message" not in found


@given(st.lists(st.booleans(), max_size=400))
def test_other_bodies_are_raw(bits: list[bool]) -> None:
    builder = Builder()
    for bit in bits:
        builder.store_bit(int(bit))
    body = builder.end_cell()
    word = int("".join(str(int(bit)) for bit in bits[:32]) or "1", 2)
    if len(bits) >= 32 and word in (0, ENCRYPTED_OPCODE) and len(bits) % 8 == 0:
        return
    found = render_message(_row(body))
    assert found["msg_data"]["@type"] == "msg.dataRaw"
    assert Cell.one_from_boc(base64.b64decode(found["msg_data"]["body"])).hash == body.hash
    assert found["msg_data"]["init_state"] == ""
    if not bits:
        assert found["message"] == ""
        return
    padded = "".join(str(int(bit)) for bit in bits).ljust((len(bits) + 7) // 8 * 8, "0")
    raw = bytes(int(padded[at : at + 8], 2) for at in range(0, len(padded), 8))
    assert found["message"] == _base64(raw) + "\n"


def test_half_a_byte_after_a_comment_is_ignored() -> None:
    body = Builder().store_uint(0, 32).store_bytes(b"hi").store_uint(5, 4).end_cell()
    assert render_message(_row(body))["message"] == "hi"


def test_a_comment_that_goes_on_in_an_exotic_cell_is_raw() -> None:
    library = Cell(
        Builder().store_uint(2, 8).store_bytes(bytes(32)).end_cell().bits, [], CellTypes.library_ref
    )
    body = Builder().store_uint(0, 32).store_ref(library).end_cell()
    assert render_message(_row(body))["msg_data"]["@type"] == "msg.dataRaw"
    assert render_message(_row(library))["msg_data"]["@type"] == "msg.dataRaw"


def test_what_a_message_lacks_is_empty_or_zero() -> None:
    body = Builder().end_cell()
    found = render_message(
        _row(body, source=None, source_workchain=None, value=None, fwd_fee=None, created_lt=None)
    )
    assert found["source"] == ""
    assert (found["value"], found["fwd_fee"], found["created_lt"]) == ("0", "0", "0")
    assert found["ihr_fee"] == "0"
    assert found["destination"] == Address((-1, b"\x11" * 32)).to_str()


def test_extra_currencies_are_listed_by_id() -> None:
    row = _row(
        Builder().end_cell(), value_extra_currencies='{"100":"7","9":"340282366920938463463"}'
    )
    assert render_message(row)["extra_currencies"] == [
        {"@type": "extraCurrency", "id": 9, "amount": "340282366920938463463"},
        {"@type": "extraCurrency", "id": 100, "amount": "7"},
    ]


def test_a_state_is_shown_beside_a_raw_body() -> None:
    state = Builder().store_uint(5, 5).end_cell()
    found = render_message(_row(Builder().end_cell(), init_state=state.to_boc()))
    shown = base64.b64decode(found["msg_data"]["init_state"])
    assert Cell.one_from_boc(shown).hash == state.hash


def test_the_demo_has_every_kind(ask: Asker) -> None:
    kinds: dict[str, int] = {}
    for digits in ("906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d",):
        for tx in ask("getTransactions", address="0:" + digits, limit=1000):
            for message in [*([tx["in_msg"]] if "in_msg" in tx else []), *tx["out_msgs"]]:
                kinds[message["msg_data"]["@type"]] = kinds.get(message["msg_data"]["@type"], 0) + 1
                if message["msg_data"]["@type"] == "msg.dataText":
                    text = base64.b64decode(message["msg_data"]["text"]).decode()
                    assert message["message"] == text
    assert kinds["msg.dataText"] > 10
    assert kinds["msg.dataRaw"] > 10


@pytest.fixture(scope="module")
def reader(demo_lake: Path) -> Reader:
    return Reader(snapshot := open_snapshot(demo_lake), open_views(snapshot))


def read_some(reader: Reader) -> list[Record]:
    keys = reader.rows("v3/transaction_keys", limit=20)
    found: list[Any] = reader.rows("v3/transactions", keys=keys)
    return found


def test_bags_have_the_hashes_of_their_transactions(reader: Reader) -> None:
    bags = read_bags(reader, read_some(reader))
    assert len(bags) == 20
    assert all(parse_boc(bag).hash(0) == tx_hash for tx_hash, bag in bags.items())


def test_a_transaction_without_a_bag_is_refused_with_the_cure() -> None:
    """As in a lake of schema version 2."""
    record = Mock(row={"hash": b"\xab" * 32, "lt": 1})
    reader = Mock(rows=Mock(return_value=[{"hash": b"\xab" * 32, "boc": None}]))
    with pytest.raises(NotDerived, match=r"(ab){32} without its bag .* into a new lake"):
        read_bags(reader, [record])
