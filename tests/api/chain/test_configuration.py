"""Configuration parameters of the network of 2026, encoded by hand and genuine."""

from pathlib import Path
from typing import Any

import pytest
from pytoniq_core import Cell, HashMap, begin_cell

from tonlake.api.explorer.network import NAMES, compare_params, decode_param
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.writer import serialize_boc


def decode(number: int, cell: Cell) -> dict[str, Any]:
    value = decode_param(number, cell.to_boc())
    assert value is not None
    return value


def start(tag: int) -> Any:
    return begin_cell().store_uint(tag, 8)


def test_reported_parameters(shared: Path) -> None:
    folder = shared / "data" / "reports" / "12-config-params"
    found: Any = decode_param(30, bytes.fromhex((folder / "p30.hex").read_text()))
    assert found is not None
    assert found["mc"] == found["shard"]
    assert found["mc"]["value"]["cell_reference"] == {
        "@type": "simplex_config",
        "flags": "0",
        "use_quic": True,
        "target_rate_ms": "400",
        "slots_per_leader_window": "4",
        "first_block_timeout_ms": "3000",
        "max_leader_window_desync": "250",
    }
    precompiled: Any = decode_param(45, bytes.fromhex((folder / "p45.hex").read_text()))
    assert precompiled is not None
    assert precompiled["list"]["root"]["node"]["value"] == {
        "@type": "precompiled_smc",
        "gas_usage": "1234",
    }


def test_second_form_of_simplex_for_one_chain() -> None:
    values = HashMap(8, value_serializer=lambda value, builder: builder.store_uint(value, 32))
    values.set_int_key(3, 400)
    config = start(0x22).store_uint(0, 5).store_uint(1, 2).store_bit(0).store_uint(8, 32)
    cell = (
        start(0x10).store_bit(0).store_maybe_ref(config.store_dict(values.serialize()).end_cell())
    )
    found = decode(30, cell.end_cell())
    assert found["mc"] == {"@type": "nothing_from_maybe"}
    shard = found["shard"]["value"]["cell_reference"]
    assert shard["@type"] == "simplex_config_v2"
    assert shard["protocol_version"] == "1"
    assert shard["slots_per_leader_window"] == "8"
    edge = shard["noncritical_params"]["root"]
    assert (edge["label"]["s"], edge["node"]["value"]) == ("03", "400")


@pytest.mark.parametrize("number", [71, 72, 73])
def test_oracle_bridges(number: int) -> None:
    oracles = HashMap(256, value_serializer=lambda value, builder: builder.store_uint(value, 256))
    oracles.set_int_key(5, 6)
    cell = begin_cell().store_bytes(b"\1" * 32).store_bytes(b"\2" * 32)
    cell = cell.store_dict(oracles.serialize()).store_bytes(b"\3" * 32)
    bridge = decode(number, cell.end_cell())["bridge"]
    assert bridge["bridge_address"] == "01" * 32
    assert bridge["external_chain_address"] == "03" * 32
    assert NAMES[number].endswith("bridge")


@pytest.fixture(scope="module")
def negative(shared: Path) -> dict[int, bytes]:
    """The negative parameters of the main network."""
    path = shared / "data" / "configs" / "mainnet_config_tonutils.boc"
    tree = parse_boc(path.read_bytes())
    signed = (
        (key - (1 << 32), serialize_boc(tree, [value.load_ref()]))
        for key, value in iter_hashmap(tree, tree.roots[0], 32)
        if key >> 31
    )
    return dict(signed)


def test_negative_parameters_of_the_main_network(negative: dict[int, bytes]) -> None:
    assert sorted(negative) == [-1000, -999, -90, -71]
    assert negative.keys() <= NAMES.keys()
    found: dict[int, Any] = {number: decode_param(number, boc) for number, boc in negative.items()}
    assert found[-999]["public_key"].lower().startswith("cbb9d1062954439a83a91f27835fb9d2")
    assert found[-71]["bridge_address"].lower().startswith("dd24c4a1f2b88f8b7053513b")
    assert found[-71]["oracles"]["@type"] == "hashmap_root"
    assert "code" in found[-1000]
    assert found[-90] is None


def test_the_diff_of_a_key_block_shows_negative_parameters(negative: dict[int, bytes]) -> None:
    key = begin_cell().store_uint(5, 256).end_cell().to_boc()
    changes = compare_params(
        negative, {number: negative[number] for number in (-1000, -71)} | {-999: key}
    )
    shown = {(change.number, change.path): (change.before, change.after) for change in changes}
    assert set(shown) == {(-999, "public_key"), (-90, "")}
    assert shown[-999, "public_key"][1].endswith("05")
    assert shown[-90, ""][0].startswith("a cell of unknown form")
    assert {change.name for change in changes} == {NAMES[-999], NAMES[-90]}
    assert compare_params(negative, negative) == []


@pytest.mark.parametrize("number", [79, 80, 81, 82])
def test_token_bridges(number: int) -> None:
    def begin(tag: int) -> Any:
        return start(tag).store_bytes(b"\1" * 32).store_bytes(b"\2" * 32).store_bit(0)

    first = decode(number, begin(0).store_uint(1, 8).store_coins(7).end_cell())["bridge"]
    assert first["@type"] == "jetton_bridge_params_v0"
    assert first["burn_bridge_fee"]["amount"]["value"] == "7"
    prices = begin_cell()
    for fee in range(10, 16):
        prices = prices.store_coins(fee)
    second = begin(1).store_uint(1, 8).store_ref(prices.end_cell()).store_bytes(b"\3" * 32)
    found = decode(number, second.end_cell())["bridge"]
    assert found["@type"] == "jetton_bridge_params_v1"
    shown = found["prices"]
    fees = [fee["amount"]["value"] for name, fee in shown.items() if name != "@type"]
    assert fees == ["10", "11", "12", "13", "14", "15"]


def test_other_forms_are_not_decoded() -> None:
    assert decode_param(30, start(0x11).store_bit(0).store_bit(0).end_cell().to_boc()) is None
    assert decode_param(45, start(0xC1).store_bit(0).end_cell().to_boc()) is None
