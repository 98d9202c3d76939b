"""The configuration and libraries, against the zero state and an independent implementation."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Builder, Cell, HashMap

from tests.api.v2.conftest import Asker
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.tvm.context import join_params


def _bytes(result: dict[str, Any]) -> bytes:
    assert result["@type"] == "configInfo"
    assert result["config"]["@type"] == "tvm.cell"
    return base64.b64decode(result["config"]["bytes"])


def _all_hashes(boc: bytes) -> set[bytes]:
    tree = parse_boc(boc)
    return {tree.hash(cell) for cell in range(tree.count)}


def test_the_configuration_is_a_cell_of_the_zero_state(ask: Asker, demo_facts: Path) -> None:
    """The dictionary is rebuilt and must have the chain's own hash."""
    boc = _bytes(ask("getConfigAll"))
    tree = parse_boc(boc)
    assert tree.hash(tree.roots[0]) in _all_hashes((demo_facts / "zerostate.boc").read_bytes())
    assert _bytes(ask("getConfigAll", seqno=1)) == boc


def test_every_parameter_is_in_the_configuration(ask: Asker) -> None:
    whole = Cell.one_from_boc(_bytes(ask("getConfigAll")))
    params = HashMap.parse(whole.begin_parse(), 32)
    assert params is not None
    assert {0, 1, 15, 34} <= params.keys()
    for number, value in params.items():
        boc = _bytes(ask("getConfigParam", config_id=number))
        assert Cell.one_from_boc(boc).hash == value.load_ref().hash
        assert _bytes(ask("getConfigParam", param=number, seqno=100)) == boc


def test_rules_of_parameters(ask: Asker) -> None:
    rule = "failed to validate request: only one of config_id or param should be specified"
    assert ask.refused("getConfigParam") == (422, rule)
    assert ask.refused("getConfigParam", param=1, config_id=1) == (422, rule)
    rule = "failed to validate request: param should be non-negative"
    assert ask.refused("getConfigParam", param=-1) == (422, rule)
    rule = "failed to validate request: seqno should be positive"
    assert ask.refused("getConfigAll", seqno=0) == (422, rule)
    unknown = (500, "LITE_SERVER_NOTREADY: seqno not in db")
    assert ask.refused("getConfigAll", seqno=1000) == unknown
    assert ask.refused("getConfigParam", param=0, seqno=1000) == unknown
    assert ask.refused("getConfigParam", param=12345)[0] == 500


@given(
    st.dictionaries(
        st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-9, 90),
        st.binary(max_size=60),
        min_size=1,
        max_size=40,
    )
)
def test_a_dictionary_is_written_as_others_write_it(params: dict[int, bytes]) -> None:
    cells = {key: Builder().store_bytes(value).end_cell() for key, value in params.items()}
    oracle = HashMap(32, value_serializer=lambda cell, into: into.store_ref(cell))
    for key, cell in cells.items():
        oracle.set_int_key(key & 0xFFFFFFFF, cell)
    expected = oracle.serialize()
    assert expected is not None
    found = Cell.one_from_boc(join_params({key: cell.to_boc() for key, cell in cells.items()}))
    assert found.hash == expected.hash


def test_libraries_that_are_not_public_are_left_out(ask: Asker) -> None:
    wanted = [hashlib.sha256(b"1").hexdigest(), base64.b64encode(bytes(32)).decode()]
    for libraries in (wanted[0], wanted):
        found = ask("getLibraries", libraries=libraries)
        assert found == {"@type": "smc.libraryResult", "result": []}
        assert ask.post("getLibraries", libraries=libraries) == found
    text = "failed to parse get request: invalid hash: 'x'"
    assert ask.refused("getLibraries", libraries="x") == (422, text)
    assert ask.refused("getLibraries")[0] == 422
