"""Answers recorded from public services: the same fields, the same kinds of values."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.v2.conftest import Asker
from tonlake.api.v2.transaction import render_transaction
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc

SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
OWN_EXTRA = {"@extra"}
"""The Python server repeats this in every object; ours stands beside the result alone."""

ABSENT_IN_OLD = {"hash", "extra_currencies"}
"""Fields that servers had not yet when the older answers were recorded."""


def _load(shared: Path, name: str) -> Any:
    text = (shared / "data" / "responses" / "v2" / name).read_text(encoding="utf-8")
    return json.loads(text)


def _compare(recorded: object, found: object, path: str) -> None:
    """Check that ``found`` has every recorded field, with a value of the same kind."""
    assert type(found) is type(recorded), path
    if isinstance(recorded, dict):
        assert isinstance(found, dict)
        assert recorded.keys() - OWN_EXTRA <= found.keys(), path
        for name in recorded.keys() - OWN_EXTRA:
            _compare(recorded[name], found[name], f"{path}.{name}")
    elif isinstance(recorded, list) and recorded:
        assert isinstance(found, list)
        assert found, path
        _compare(recorded[0], found[0], f"{path}[0]")


@pytest.mark.parametrize(
    ("name", "method", "params"),
    [
        ("getaddressinformation", "getAddressInformation", {"address": SHOP}),
        ("getblockheader", "getBlockHeader", {"workchain": -1, "shard": -(1 << 63), "seqno": 9}),
        ("lookupblock", "lookupBlock", {"workchain": -1, "shard": -(1 << 63), "seqno": 9}),
    ],
)
def test_shapes_of_answers(
    ask: Asker, shared: Path, name: str, method: str, params: dict[str, Any]
) -> None:
    recorded = _load(shared, f"{name}/blockpi.json")["result"]
    found = ask(method, **params)
    _compare(recorded, found, name)
    assert found["@type"] == recorded["@type"]


@pytest.mark.parametrize(
    "name", ["getTransactions/phpsdk-item.json", "raw.transaction/zeta-4581.json"]
)
def test_shape_of_a_transaction(ask: Asker, shared: Path, name: str) -> None:
    recorded = _load(shared, name)
    recorded["in_msg"]["msg_data"].pop("text", None)  # one recording is edited by hand
    page = ask("getTransactions", address=SHOP, limit=1000)
    found = next(
        tx
        for tx in page
        if tx["out_msgs"]
        and tx["in_msg"]["msg_data"]["@type"] == "msg.dataRaw"
        and tx["out_msgs"][0]["msg_data"]["@type"] == "msg.dataRaw"
    )
    _compare(recorded, found, name)
    missing = found["in_msg"].keys() - recorded["in_msg"].keys()
    assert missing <= ABSENT_IN_OLD


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("getaddressinformation/blockpi.json", ("result", "code")),
        ("getaddressinformation/blockpi.json", ("result", "data")),
        ("getTransactions/phpsdk-item.json", ("data",)),
        ("raw.transaction/zeta-4581.json", ("data",)),
        ("raw.transaction/zeta-4581.json", ("in_msg", "msg_data", "body")),
    ],
)
def test_bags_of_cells_are_written_byte_for_byte(
    shared: Path, name: str, path: tuple[str, ...]
) -> None:
    text = _load(shared, name)
    for key in path:
        text = text[key]
    tree = parse_boc(base64.b64decode(text))
    found = serialize_boc(tree, tree.roots, crc32c=True)
    assert base64.b64encode(found).decode() == text


def test_a_recorded_transaction_is_rendered_field_by_field(shared: Path) -> None:
    """All but the tags, which later servers changed, and the line feed they added."""
    recorded = _load(shared, "raw.transaction/zeta-4581.json")
    row, messages = decode_transaction(base64.b64decode(recorded["data"]))
    found = render_transaction({**row, "workchain": 0}, messages, row["boc"], is_std=False)
    recorded.pop("@type")
    recorded["in_msg"]["message"] += "\n"
    for message in (recorded["in_msg"], recorded["out_msgs"][0]):
        message["@type"] = "ext.message"
    assert found == recorded
