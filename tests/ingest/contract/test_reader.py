"""Readers of data cells answer as the TVM does: over all states of the demo node, and made ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.cell.build import CellBuilder
from ingest.contract.detection import Question
from ingest.contract.interview import Interview, make_key
from ingest.contract.investigation import Investigation
from ingest.contract.layout import Subject, store_address
from ingest.contract.network import Network
from ingest.contract.reader import READERS, find_reader, list_readable
from ingest.contract.stack import Address, Cell
from ingest.contract.world import AccountState
from ingest.tvm.pool import TvmPool
from lake.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ingest.contract.stack import Value
    from ingest.contract.world import World

GAS = 1_000_000
WALLET = bytes.fromhex("beb0683ebeb8927fe9fc8ec0a18bc7dd17899689825a121eab46c5a3a860d0ce")


@pytest.fixture(scope="module")
def pool(tvm: None) -> Iterator[TvmPool]:  # noqa: ARG001 - skips
    made = TvmPool(Settings(tvm_wall_ms=60_000))
    yield made
    made.close()


class Doubting(Interview):
    """Asks the TVM as well wherever data were read, and keeps what differs."""

    def __init__(self, world: World, pool: TvmPool) -> None:
        super().__init__(world, Network(world, 1), pool, GAS)
        self.agreed = 0
        self.doubts: list[tuple[str, str]] = []

    def answer(self, question: Question, state: AccountState, mc_seqno: int) -> list[Value] | None:
        told = super().answer(question, state, mc_seqno)
        if state.code_hash is None or find_reader(state.code_hash, question.method) is None:
            return told
        ran = self.run_tvm(question, state, mc_seqno)
        if make_key(told) == make_key(ran):
            self.agreed += 1
        else:
            self.doubts.append((question.method, str(state.address)))
        return told


def test_data_and_machine_agree_on_every_state(demo_world: World, pool: TvmPool) -> None:
    interview = Doubting(demo_world, pool)
    assert list(Investigation(demo_world, interview, -777).run(1))
    assert interview.doubts == []
    assert interview.agreed > 200


ADDRESSES = st.builds(Address, st.sampled_from((0, -1)), st.binary(min_size=32, max_size=32))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)
@given(balance=st.integers(0, 2**120 - 1), owner=ADDRESSES, jetton=ADDRESSES)
def test_data_and_machine_agree_on_made_wallets(
    demo_world: World, pool: TvmPool, balance: int, owner: Address, jetton: Address
) -> None:
    """A wallet of any balance, owner and master answers as its code does."""
    demo_world.load_cells([WALLET])
    code = demo_world.find_cell(WALLET)
    assert code is not None
    data = CellBuilder(code.tree).store_coins(balance)
    root = store_address(store_address(data, owner), jetton).store_ref(code.root).end()
    cell = Cell(code.tree, root)
    reader = find_reader(WALLET, "get_wallet_data")
    assert reader is not None
    told = reader(Subject(owner, code, cell, ()))
    assert [told[0], told[3]] == [balance, code]
    interview = Interview(demo_world, Network(demo_world, 1), pool, GAS)
    demo_world.keep_cell(cell)
    state = AccountState(0, bytes(32), 1, 0, 1, 10**9, None, WALLET, cell.hash)
    ran = interview.run_tvm(Question(state.address, "get_wallet_data"), state, 1)
    assert make_key(told) == make_key(ran)


def test_readable_methods_are_those_of_the_code() -> None:
    assert list_readable(WALLET) == ["get_wallet_data"]
    assert list_readable(bytes(32)) == []
    assert len(READERS) > 20
