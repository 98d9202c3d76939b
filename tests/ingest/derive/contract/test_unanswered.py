"""Get-methods that no engine can run are noted, and neither findings nor failures."""

from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from tests.ingest.derive.contract.conftest import MadeWorld
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import LIBRARY
from tonlake.ingest.derive.contract.detection import ContractDetection
from tonlake.ingest.derive.contract.session import GetMethodSession, NotRun
from tonlake.ingest.derive.contract.stack import Cell, GetMethod
from tonlake.ingest.derive.contract.world import KnownAccount, Network
from tonlake.ingest.derive.tvm.call import VERSION_PARAM, make_version_param
from tonlake.ingest.derive.tvm.support import LIBRARY_MISSING
from tonlake.lake.schema import CONFIG_PARAMS, UNANSWERED_METHODS, WALLETS

MISSING = bytes.fromhex("77") * 32
UNASSIGNED = "fe70ff"  # neither an instruction of version 15 nor a method table


def replace_version(params: pa.Table, version: int) -> pa.Table:
    """Return configuration parameters with another global version."""
    columns = (params["param"].to_pylist(), params["boc"].to_pylist())
    bocs = [
        make_version_param(version) if param == VERSION_PARAM else boc
        for param, boc in zip(*columns, strict=True)
    ]
    place = params.schema.get_field_index("boc")
    return params.set_column(place, params.schema.field(place), pa.array(bocs, pa.binary()))


def find_account(world: MadeWorld, code: str) -> KnownAccount:
    """Return the state of an account to which the world now gives this code, in hex."""
    state = next(each for each in world.list_states() if each.data_hash is not None)
    assert state.code_hash is not None
    builder = CellBuilder().store_uint(int(code, 16), len(code) * 4)
    world.made[state.code_hash] = Cell(builder.tree, builder.end())
    return state


def detect(world: MadeWorld, state: KnownAccount, version: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the findings about one state on a network of this version."""
    params = replace_version(world.tables[CONFIG_PARAMS.name], version)
    world.tables = {**world.tables, CONFIG_PARAMS.name: params}
    session = GetMethodSession(world, Network(world, 1), None)
    found = ContractDetection(world, session, None).detect([state], 1)
    # Wallets are read from their data: no get-method is run.
    return [(each.table, each.fields) for _state, each in found if each.table != WALLETS.name]


def test_an_unknown_instruction_of_a_later_network_is_noted(demo_world: MadeWorld) -> None:
    state = find_account(demo_world, UNASSIGNED)
    found = detect(demo_world, state, version=99)
    assert {table for table, _fields in found} == {UNANSWERED_METHODS.name}
    (wallet,) = (row for _, row in found if row["contract_table"] == "jetton_wallets")
    assert (wallet["method"], wallet["asked_method"]) == ("get_wallet_data", "get_wallet_data")
    assert (wallet["asked_workchain"], wallet["asked"]) == state.address
    assert "the network has 99" in wallet["reason"]
    methods = [row["method"] for _, row in found]
    assert len(methods) == len(set(methods))
    assert {"get_jetton_data", "get_collection_data", "get_nft_data"} < set(methods)


def test_an_unknown_instruction_of_this_version_is_a_failure(demo_world: MadeWorld) -> None:
    assert detect(demo_world, find_account(demo_world, UNASSIGNED), version=11) == []


def test_a_missing_library_is_noted_where_the_data_is_missing_too(demo_world: MadeWorld) -> None:
    """A lake that begins in the middle lacks cells of data that blocks did not change."""
    state = find_account(demo_world, UNASSIGNED)
    assert state.code_hash is not None
    builder = CellBuilder().store_uint(LIBRARY, 8).store_bytes(MISSING)
    code = Cell(builder.tree, builder.end(exotic=True))
    demo_world.made[state.code_hash] = code
    state = state._replace(data_hash=MISSING)
    network = Network(demo_world, 1)
    session = GetMethodSession(demo_world, network, None)
    with (
        mock.patch.object(network, "_is_whole", new=False),
        pytest.raises(NotRun, match=f"{LIBRARY_MISSING}: {MISSING.hex()}"),
    ):
        session.answer(GetMethod(state.address, "get_wallet_data"), state, 1)
    assert session.answer(GetMethod(state.address, "get_wallet_data"), state, 1) is None
