"""Configuration parameters of key blocks, states and recorded configurations."""

import json
import re
from pathlib import Path

from tests.ingest.hashmaps import build_hashmap
from tests.ingest.networks import Network
from tonlake.ingest.blocks import KeyMark
from tonlake.ingest.decode.block.block import config_rows, find_version, read_mark, read_params
from tonlake.ingest.decode.block.header import read_header, read_mc_extra
from tonlake.ingest.decode.block.state import read_config, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree


def test_every_key_block_gives_the_complete_configuration(network: Network) -> None:
    rows = network.rows("config_params")
    key_blocks = {row["seqno"] for row in network.rows("blocks") if row["key_block"]}
    assert {row["mc_seqno"] for row in rows} == key_blocks | {0}
    for mc_seqno in key_blocks | {0}:
        assert {0, 1, 8, 15, 20, 34} <= {
            row["param"] for row in rows if row["mc_seqno"] == mc_seqno
        }
    for row in rows:
        tree = parse_boc(row["boc"])
        assert tree.hash(tree.roots[0]) == row["hash"]


def test_a_mainnet_key_block(shared: Path) -> None:
    path = shared / "data" / "chains" / "mainnet_mc_3082181_3082201" / "3082181_key.boc"
    tree = parse_boc(path.read_bytes())
    header = read_header(tree)
    rows = config_rows(tree, header.seqno, header.gen_utime)
    params = [param for _, _, param, _, _ in rows]
    root = read_mc_extra(tree).config
    assert root is not None
    assert len(params) == len(set(params)) == sum(1 for _ in iter_hashmap(tree, root, 32))
    assert {row[:2] for row in rows} == {(3082181, header.gen_utime)}
    version = parse_boc(next(row[4] for row in rows if row[2] == 8))
    assert version.slice(version.roots[0]).load_uint(8) == 0xC4
    assert config_rows(parse_boc(path.with_name("3082182.boc").read_bytes()), 3082182, 0) == []


def test_key_marks_of_masterchain_blocks(shared: Path) -> None:
    folder = shared / "data" / "chains" / "mainnet_mc_3082181_3082201"
    key_block = read_mark(parse_boc((folder / "3082181_key.boc").read_bytes()))
    assert (key_block.before < 3082181, key_block.version) == (True, 1)
    assert read_mark(parse_boc((folder / "3082182.boc").read_bytes())) == KeyMark(3082181, None)


def test_software_comes_before_the_vote(shared: Path) -> None:
    blocks = shared / "data" / "blocks"
    tree = parse_boc((blocks / "mainnet_-1_8000000000000000_46991999.boc").read_bytes())
    assert read_header(tree).gen_software_version == 10
    assert read_mark(tree).version == 9


def test_without_its_parameter_the_version_is_zero() -> None:
    """As a node counts it."""
    tree = CellBuilder().tree
    value = CellBuilder(tree).store_uint(0xC4, 8).store_uint(12, 32).store_uint(0, 64).end()
    for param, version in ((7, 0), (8, 12)):
        root = build_hashmap(tree, {param: lambda leaf: leaf.store_ref(value)}, 32)
        assert find_version(tree, root) == version


def test_negative_keys_are_signed(shared: Path) -> None:
    tree = parse_boc((shared / "data" / "configs" / "mainnet_config_tonutils.boc").read_bytes())
    params = {row[2] for row in read_params(tree, tree.roots[0], 1, 2)}
    assert {-1000, -999, -90, -71, 0, 79} <= params


def _find_params(tree: CellTree) -> dict[int, int]:
    """Return the parameters that a Merkle proof of a masterchain state shows."""
    state = read_state(tree, tree.links[tree.roots[0]][0])
    root = read_config(tree, state)
    assert root is not None
    return {
        row[2]: cell
        for row, cell in zip(
            read_params(tree, root, 0, 0),
            (value.load_ref() for _, value in iter_hashmap(tree, root, 32)),
            strict=True,
        )
    }


def test_a_recorded_configuration(shared: Path) -> None:
    """Parameters out of a proof equal those another decoder printed as JSON."""
    folder = shared / "data" / "configs"
    tree = parse_boc((folder / "mainnet_config_proof_4324374.boc").read_bytes())
    expected = json.loads((folder / "mainnet_config_4324374.json").read_text())
    cells = _find_params(tree)
    # The other decoder leaves out what it has no type for.
    assert {int(re.sub(r"\D", "", name)) for name in expected} <= cells.keys()
    for param, name in ((0, "ConfigAddr"), (1, "ElectorAddr"), (4, "DnsRootAddr")):
        found = tree.slice(cells[param]).load_bytes(32).hex()
        assert found == expected[f"ConfigParam{param}"][name]
    version = tree.slice(cells[8])
    assert version.load_uint(8) == 0xC4
    wanted = expected["ConfigParam8"]["GlobalVersion"]
    assert (version.load_uint(32), version.load_uint(64)) == (
        wanted["Version"],
        wanted["Capabilities"],
    )
