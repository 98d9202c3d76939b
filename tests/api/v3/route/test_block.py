"""Operations about blocks, compared with the demo node's lite server."""

import base64
from collections import Counter
from typing import Any

import pytest

from tests.api.explorer.page import to_hex
from tests.api.v3.conftest import Asker, Facts

FLAGS = ("after_merge", "before_split", "after_split", "want_split", "want_merge", "key_block")


def _key(block: dict[str, Any]) -> tuple[int, str, int]:
    return block["workchain"], block["shard"], block["seqno"]


def _fact_key(fact: dict[str, Any]) -> tuple[int, str, int]:
    return fact["workchain"], f"{fact['shard'] & 0xFFFFFFFFFFFFFFFF:X}", fact["seqno"]


def test_masterchain_info_names_both_ends(ask: Asker, facts: Facts) -> None:
    answer = ask("masterchainInfo")
    assert set(answer) == {"last", "first"}
    assert (answer["first"]["seqno"], answer["last"]["seqno"]) == (1, 238)
    newest = max(
        (fact for fact in facts.blocks if fact["workchain"] == -1), key=lambda fact: fact["seqno"]
    )
    assert to_hex(answer["last"]["root_hash"]) == newest["root_hash"]


def test_every_block_equals_the_lite_server_s(ask: Asker, facts: Facts) -> None:
    blocks = ask("blocks", limit=1000)["blocks"]
    by_key = {_key(block): block for block in blocks}
    assert len(blocks) == len(by_key) == len(facts.blocks)
    for fact in facts.blocks:
        block = by_key[_fact_key(fact)]
        assert to_hex(block["root_hash"]) == fact["root_hash"]
        assert to_hex(block["file_hash"]) == fact["file_hash"]
        assert block["global_id"] == -1414
        assert [block[name] for name in FLAGS] == [bool(fact[name]) for name in FLAGS]
        for name in ("gen_utime", "start_lt", "end_lt"):
            assert block[name] == str(fact[name])
        for name in ("tx_count", "min_ref_mc_seqno", "prev_key_block_seqno"):
            assert block[name] == fact[name]
        assert block["masterchain_block_ref"] == {
            "workchain": -1,
            "shard": "8000000000000000",
            "seqno": fact["mc_seqno"],
        }
        assert [_key(prev) for prev in block["prev_blocks"]] == [
            _fact_key(prev) for prev in fact["prev"]
        ]


def test_blocks_come_newest_first(ask: Asker) -> None:
    blocks = ask("blocks", limit=1000)["blocks"]
    order = [(int(block["gen_utime"]), int(block["start_lt"])) for block in blocks]
    assert order == sorted(order, reverse=True)
    oldest = ask("blocks", limit=1000, sort="asc")["blocks"]
    order = [(int(block["gen_utime"]), int(block["start_lt"])) for block in oldest]
    assert order == sorted(order)
    assert sorted(map(_key, oldest)) == sorted(map(_key, blocks))


@pytest.mark.parametrize(
    ("filters", "match"),
    [
        ({"workchain": 0}, lambda fact: fact["workchain"] == 0),
        ({"shard": "4000000000000000"}, lambda fact: fact["shard"] == 1 << 62),
        ({"shard": str(1 << 62)}, lambda fact: fact["shard"] == 1 << 62),
        ({"shard": "-9223372036854775808"}, lambda fact: fact["shard"] == -(1 << 63)),
        ({"seqno": 100}, lambda fact: fact["seqno"] == 100),
        ({"mc_seqno": 120}, lambda fact: fact["mc_seqno"] == 120),
        (
            {"start_utime": 1795238540, "end_utime": 1795238550},
            lambda fact: 1795238540 <= fact["gen_utime"] <= 1795238550,
        ),
        (
            {"start_lt": 20000000, "end_lt": 30000000},
            lambda fact: 20000000 <= fact["start_lt"] <= 30000000,
        ),
        (
            {"workchain": -1, "start_lt": 20000001, "end_lt": 30000000},
            lambda fact: fact["workchain"] == -1 and 20000001 <= fact["start_lt"] <= 30000000,
        ),
    ],
)
def test_filters(ask: Asker, facts: Facts, filters: dict[str, Any], match: Any) -> None:
    blocks = ask("blocks", limit=1000, **filters)["blocks"]
    assert sorted(map(_key, blocks)) == sorted(
        _fact_key(fact) for fact in facts.blocks if match(fact)
    )
    assert blocks


def test_blocks_by_hash(ask: Asker, facts: Facts) -> None:
    fact = facts.blocks[300]
    for name in ("root_hash", "file_hash"):
        (block,) = ask("blocks", **{name: fact[name]})["blocks"]
        assert _key(block) == _fact_key(fact)
        assert ask("blocks", **{name: block[name]})["blocks"] == [block]
        assert ask("blocks", **{name: "0" * 64})["blocks"] == []


def test_limits(ask: Asker) -> None:
    assert len(ask("blocks")["blocks"]) == 10
    assert len(ask("blocks", limit="")["blocks"]) == 1
    assert len(ask("blocks", limit=-5, offset=-5)["blocks"]) == 1
    assert len(ask("blocks", limit=1000)["blocks"]) == 588
    assert ask("blocks", offset=100000)["blocks"] == []


def test_shard_blocks_are_those_a_masterchain_block_commits(ask: Asker, facts: Facts) -> None:
    for seqno in (1, 110, 111, 150, 238):
        blocks = ask("masterchainBlockShards", seqno=seqno, limit=100)["blocks"]
        wanted = [fact for fact in facts.blocks if fact["mc_seqno"] == seqno]
        assert sorted(map(_key, blocks)) == sorted(map(_fact_key, wanted))
        assert (-1, "8000000000000000", seqno) in map(_key, blocks)


def _sign(block: dict[str, Any]) -> tuple[int, int, int]:
    shard = int(block["shard"], 16)
    return block["workchain"], shard - (1 << 64 if shard >> 63 else 0), block["seqno"]


def test_shard_blocks_come_by_workchain_and_signed_shard(ask: Asker, facts: Facts) -> None:
    counts = Counter(fact["mc_seqno"] for fact in facts.blocks)
    seqno, count = counts.most_common(1)[0]
    assert count > 3
    blocks = ask("masterchainBlockShards", seqno=seqno, limit=100)["blocks"]
    assert list(map(_sign, blocks)) == sorted(map(_sign, blocks))
    page = ask("masterchainBlockShards", seqno=seqno, limit=2, offset=1)["blocks"]
    assert page == blocks[1:3]
    newest = ask("masterchainBlockShards", seqno=seqno, sort="desc")["blocks"]
    assert [int(block["gen_utime"]) for block in newest] == sorted(
        (int(block["gen_utime"]) for block in blocks), reverse=True
    )


@pytest.mark.parametrize("operation", ["masterchainBlockShards", "masterchainBlockShardState"])
def test_a_masterchain_block_that_is_not_there(ask: Asker, operation: str) -> None:
    text = "blocks not found: masterchain block {} not found; this lake covers 1..238"
    assert ask.refused(operation, seqno=239) == (404, text.format(239))
    assert ask.refused(operation) == (404, text.format(0))
    assert ask.refused(operation, seqno="x")[0] == 422


def test_shard_state_has_a_top_for_every_shard(ask: Asker, facts: Facts) -> None:
    for seqno in (1, 109, 110, 120, 238):
        answer = ask("masterchainBlockShardState", seqno=seqno)
        assert set(answer) == {"blocks", "transactions", "address_book"}
        keys = list(map(_key, answer["blocks"]))
        assert keys[0] == (-1, "8000000000000000", seqno)
        before = [fact for fact in facts.blocks if fact["mc_seqno"] <= seqno]
        for key in keys[1:]:
            same = [fact for fact in before if _fact_key(fact)[:2] == key[:2]]
            assert key[2] == max(fact["seqno"] for fact in same)
        hashes = {tx["hash"] for tx in answer["transactions"]}
        assert hashes == {
            row["hash"]
            for row in facts.transactions
            if (row["workchain"], f"{row['shard'] & (1 << 64) - 1:X}", row["block_seqno"]) in keys
        }
        assert {tx["account"] for tx in answer["transactions"]} <= set(answer["address_book"])
    assert len(ask("masterchainBlockShardState", seqno=238)["blocks"]) == 3


@pytest.fixture(scope="module")
def messages(ask: Asker) -> list[dict[str, Any]]:
    """Every message of the demo lake, ascending."""
    return ask.all("messages", sort="asc")


def test_a_message_is_one_row_with_both_ends(messages: list[dict[str, Any]], facts: Facts) -> None:
    made = {text: row["hash"] for row in facts.transactions for text in row["out_msg_hashes"]}
    used: dict[str, str] = {}
    for row in facts.transactions:  # ascending, so the last execution remains
        if row["in_msg_hash"]:
            used[row["in_msg_hash"]] = row["hash"]
    assert sorted(item["hash"] for item in messages) == sorted(made.keys() | used.keys())
    for message in messages:
        assert message.get("out_msg_tx_hash") == made.get(message["hash"])
        assert message.get("in_msg_tx_hash") == used.get(message["hash"])


def test_messages_without_time_come_first_when_descending(
    ask: Asker, messages: list[dict[str, Any]]
) -> None:
    def key(message: dict[str, Any]) -> tuple[bool, int, bytes]:
        missing = message["created_lt"] is None
        lt = 0 if missing else int(message["created_lt"])
        return missing, lt, base64.b64decode(message["hash"])

    assert messages == sorted(messages, key=key)
    newest = ask("messages", limit=1000)["messages"]
    assert newest == messages[::-1][:1000]
    assert newest[0]["created_lt"] is None
    assert newest[0]["source"] is None


def test_what_externals_are(messages: list[dict[str, Any]]) -> None:
    kinds = {
        "in": [item for item in messages if item["source"] is None],
        "out": [item for item in messages if item["destination"] is None],
    }
    assert all(item["import_fee"] is not None for item in kinds["in"])
    assert len(kinds["in"]) >= 300
    assert len(kinds["out"]) == 9
    for item in (*kinds["in"], *kinds["out"]):
        for name in ("value", "fwd_fee", "ihr_fee", "bounce", "value_extra_currencies"):
            assert item[name] is None
    for item in kinds["in"]:
        assert (item["created_lt"], item["created_at"]) == (None, None)
        assert item.get("hash_norm") != item["hash"]
    internal = [item for item in messages if item["value"] is not None]
    assert all(item["value_extra_currencies"] == {} for item in internal)
    assert all("hash_norm" not in item for item in (*internal, *kinds["out"]))


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"source": "null"}, lambda item: item["source"] is None),
        ({"destination": "null"}, lambda item: item["destination"] is None),
        ({"exclude_externals": True}, lambda item: item["created_lt"] is not None),
        ({"only_externals": "on"}, lambda item: item["created_lt"] is None),
        ({"opcode": "0x0f8a7ea5"}, lambda item: item["opcode"] == "0x0f8a7ea5"),
        ({"opcode": "260734629"}, lambda item: item["opcode"] == "0x0f8a7ea5"),
        (
            {"start_lt": 20000000, "end_lt": 40000000},
            lambda item: 20000000 <= int(item["created_lt"] or 0) <= 40000000,
        ),
        (
            {"start_utime": 1795238540, "end_utime": 1795238560},
            lambda item: 1795238540 <= int(item["created_at"] or 0) <= 1795238560,
        ),
    ],
)
@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_filters_of_messages(
    ask: Asker,
    messages: list[dict[str, Any]],
    params: dict[str, Any],
    match: Any,
    sort: str,
) -> None:
    found = ask("messages", limit=1000, sort=sort, **params)["messages"]
    wanted = [item for item in messages if match(item)]
    if "start_utime" in params:
        assert sorted(map(str, found)) == sorted(map(str, wanted))
    else:
        assert found == (wanted if sort == "asc" else wanted[::-1])[:1000]
    assert found


def test_both_ends_and_the_body(ask: Asker, messages: list[dict[str, Any]]) -> None:
    sample = next(item for item in messages if item["source"] and item["destination"])
    ends = {"source": sample["source"], "destination": sample["destination"]}
    found = ask("messages", limit=1000, sort="asc", **ends)["messages"]
    assert found == [item for item in messages if {name: item[name] for name in ends} == ends]
    body = sample["message_content"]["hash"]
    by_body = ask("messages", body_hash=body, limit=1000, sort="asc")["messages"]
    assert by_body == [item for item in messages if item["message_content"]["hash"] == body]


def test_messages_by_hash_in_every_form(ask: Asker, messages: list[dict[str, Any]]) -> None:
    external = next(item for item in messages if "hash_norm" in item)
    internal = next(item for item in messages if item["value"])
    for name in ("msg_hash", "hash"):
        both = ask("messages", **{name: [external["hash_norm"], internal["hash"]]}, sort="asc")
        assert both["messages"] == [internal, external]
    joined = f"{external['hash']},{internal['hash']}"
    assert len(ask("messages", msg_hash=joined)["messages"]) == 2


def test_one_direction_shows_one_end(ask: Asker, messages: list[dict[str, Any]]) -> None:
    sample = next(item for item in messages if {"in_msg_tx_hash", "out_msg_tx_hash"} <= set(item))
    (consumed,) = ask("messages", msg_hash=sample["hash"], direction="in")["messages"]
    (produced,) = ask("messages", msg_hash=sample["hash"], direction="out")["messages"]
    assert consumed == {k: v for k, v in sample.items() if k != "out_msg_tx_hash"}
    assert produced == {k: v for k, v in sample.items() if k != "in_msg_tx_hash"}


def test_the_answer_has_a_book_and_metadata(ask: Asker) -> None:
    answer = ask("messages", limit=50, exclude_externals=True)
    ends = {item[end] for item in answer["messages"] for end in ("source", "destination")}
    assert set(answer["address_book"]) == ends - {None}
    assert answer["metadata"]
    assert set(answer) == {"messages", "address_book", "metadata"}
