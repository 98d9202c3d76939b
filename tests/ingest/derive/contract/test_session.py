"""Answers equal those of tonpy on all states of the demo node and generated ones."""

from contextlib import suppress
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytoniq.contract.nft.nft_sale import NFT_SALE_CODE
from pytoniq_core import Address as CoreAddress
from pytoniq_core.tlb.custom.nft import NftItemSaleData, NftItemSaleFees

from tests.ingest.derive.contract.conftest import MadeWorld
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.tree import LIBRARY, CellTree
from tonlake.ingest.derive.contract.detection import ContractDetection
from tonlake.ingest.derive.contract.program import GAS_LIMIT, from_tvm, to_tvm
from tonlake.ingest.derive.contract.record import make_table
from tonlake.ingest.derive.contract.session import GetMethodSession, NotRun, make_key
from tonlake.ingest.derive.contract.stack import AddrStd, Cell, GetMethod, Mismatch, Value
from tonlake.ingest.derive.contract.world import KnownAccount, Network, World
from tonlake.ingest.derive.tvm.call import SUCCESS, GetMethodCall, join_libraries, method_id
from tonlake.ingest.derive.tvm.support import LIBRARY_MISSING
from tonlake.lake.schema import LIBRARIES

pytest.importorskip("tonpy")


def ask_tonpy(
    session: GetMethodSession, question: GetMethod, state: KnownAccount, data: Cell
) -> list[Value] | None:
    """Return the stack that tonpy leaves; None if the get-method fails."""
    from tests.ingest.derive.tvm import oracle  # noqa: PLC0415 - not on every platform

    assert state.code_hash is not None
    code = session.find_code(state.code_hash)
    assert code is not None
    call = GetMethodCall(
        code=code.cell.bag(),
        data=data.bag(),
        stack=(*map(to_tvm, question.arguments), method_id(question.method)),
        context=session.describe(state, 1),
        libraries=join_libraries(session._list_libraries(code.cell, 1)),
        gas_limit=GAS_LIMIT,
    )
    outcome = oracle.run_call(call)
    return [from_tvm(each) for each in outcome.stack] if outcome.exit_code in SUCCESS else None


class Doubting(GetMethodSession):
    """Checks every answer against tonpy, and records differences."""

    def __init__(self, world: World) -> None:
        super().__init__(world, Network(world, 1), None)
        self._data = world
        self.agreed = 0
        self.doubts: list[tuple[str, str]] = []

    def answer(self, question: GetMethod, state: KnownAccount, mc_seqno: int) -> list[Value] | None:
        read = super().answer(question, state, mc_seqno)
        data = self._data.find_cell(state.data_hash)
        if data is None:
            return read
        if make_key(read) == make_key(ask_tonpy(self, question, state, data)):
            self.agreed += 1
        else:
            self.doubts.append((question.method, str(state.address)))
        return read


def test_answers_equal_tonpy_on_every_state(demo_world: World) -> None:
    session = Doubting(demo_world)
    states = list(demo_world.list_states())
    assert list(ContractDetection(demo_world, session, -777).detect(states, 1))
    assert session.doubts == []
    assert session.agreed > 200


ADDRESSES = st.builds(AddrStd, st.sampled_from((0, -1)), st.binary(min_size=32, max_size=32))


@settings(max_examples=25)
@given(made=st.data(), price=st.integers(0, 2**120 - 1), fee=st.integers(0, 2**120 - 1))
def test_answers_of_sales_equal_tonpy(
    demo_world: MadeWorld, made: st.DataObject, price: int, fee: int
) -> None:
    """Sales of Getgems, version 3r2, which the demo node lacks: valid and damaged data."""
    code, data = CellTree(), CellTree()
    sale = Cell(code, graft(code, parse_boc(NFT_SALE_CODE.to_boc())))
    parties = [CoreAddress(str(made.draw(ADDRESSES))) for _ in range(5)]
    wrote = NftItemSaleData(
        is_complete=made.draw(st.booleans()),
        created_at=7,
        marketplace_address=parties[0],
        nft_address=parties[1],
        nft_owner_address=parties[2],
        full_price=price,
        fees_cell=NftItemSaleFees(parties[3], fee, parties[4], price),
        can_deploy_by_external=made.draw(st.booleans()),
    )
    cell = Cell(data, graft(data, parse_boc(wrote.serialize().to_boc())))
    if made.draw(st.booleans()):
        cell = made.draw(st.composite(damage)(cell))
    demo_world.made |= {sale.hash: sale, cell.hash: cell}
    session = GetMethodSession(demo_world, Network(demo_world, 1), None)
    assert session.has_method(sale.hash, "get_sale_data")
    state = KnownAccount(0, bytes(32), 1, 0, 1, 10**9, None, sale.hash, cell.hash)
    question = GetMethod(state.address, "get_sale_data")
    check(session, question, state, cell)


def check(session: GetMethodSession, question: GetMethod, state: KnownAccount, data: Cell) -> None:
    ran = make_key(ask_tonpy(session, question, state, data))
    assert make_key(session.answer(question, state, 1)) == ran


def damage(draw: st.DrawFn, data: Cell) -> Cell:
    """Return a data cell with some bits flipped, its end cut or extended, or a child missing."""
    value, bits = data.tree.bits(data.root)
    for _ in range(draw(st.integers(0, 4)) if bits else 0):
        value ^= 1 << draw(st.integers(0, bits - 1))
    change = draw(st.sampled_from((0, 0, 0, -1, -8, -64, 1)))
    change = max(change, -bits) if bits < 1023 else min(change, 0)
    value = value >> -change if change < 0 else value << change
    builder = CellBuilder(data.tree).store_uint(value, bits + change)
    kids = list(data.tree.links[data.root])
    if kids and draw(st.integers(0, 5)) == 0:
        kids.pop(draw(st.integers(0, len(kids) - 1)))
    for kid in kids:
        builder.store_ref(kid)
    return Cell(data.tree, builder.end())


METHODS = ("get_wallet_data", "get_jetton_data", "get_nft_data", "get_collection_data")


@settings(max_examples=60)
@given(made=st.data())
def test_answers_of_damaged_states_equal_tonpy(demo_world: MadeWorld, made: st.DataObject) -> None:
    """For any content of a data cell, both return the same, or both fail."""
    states = [state for state in demo_world.list_states() if state.code_hash is not None]
    demo_world.load_cells({each for state in states for each in (state.code_hash, state.data_hash)})
    session = GetMethodSession(demo_world, Network(demo_world, 1), None)
    choices = {
        (state.code_hash, method): state
        for method in METHODS
        for state in states
        if state.code_hash is not None and session.has_method(state.code_hash, method)
    }
    assert len(choices) > len(METHODS)
    (_code_hash, method), state = made.draw(st.sampled_from(list(choices.items())))
    data = demo_world.find_cell(state.data_hash)
    assert data is not None
    damaged = made.draw(st.composite(damage)(data))
    demo_world.made[damaged.hash] = damaged
    question = GetMethod(state.address, method)
    check(session, question, state._replace(data_hash=damaged.hash), damaged)


def make_account(world: MadeWorld, *cells: Cell) -> KnownAccount:
    """Return the state of an account with this code and data, whose cells the world now has."""
    world.made |= {cell.hash: cell for cell in cells}
    world.load_cells(cell.hash for cell in cells)
    code, data = (cell.hash for cell in cells[:2])
    return KnownAccount(0, bytes(32), 1, 0, 1000, 1, None, code, data)


def make_code(code: str, *children: Cell) -> Cell:
    builder = CellBuilder(children[0].tree if children else None).store_bytes(bytes.fromhex(code))
    for child in children:
        builder.store_ref(child.root)
    return Cell(builder.tree, builder.end())


def make_library(cell: Cell) -> Cell:
    builder = CellBuilder(cell.tree).store_uint(LIBRARY, 8).store_bytes(cell.hash)
    return Cell(cell.tree, builder.end(exotic=True))


def ask_about(session: GetMethodSession, state: KnownAccount, mc_seqno: int) -> Value:
    """Return the first value of an answer, None if there is none."""
    with mock.patch.object(session._world, "find_state", return_value=state), suppress(Mismatch):
        return session.ask(GetMethod(state.address, "get_wallet_data"), mc_seqno)[0]


SEVEN = make_code("3077")  # DROP, 7 INT


@pytest.mark.parametrize(
    ("code", "data", "answers", "runs"),
    [
        ("3077", "", [7, 7], 1),
        ("30f823", "", [1000, 2000], 2),  # DROP NOW
        ("30f8276f10", "", [1, 5], 2),  # DROP BALANCE FIRST
        ("30ed476f106f13", "", [1000, 2000], 2),  # DROP PUSHCTR c7 FIRST 3 INDEX
        ("3070f8406f13", "", [1000, 2000], 2),  # DROP ZERO GETGLOBVAR 3 INDEX
        ("30ed44d0d307", "07", [None, 7], 2),  # DROP, 8 bits of the data
        ("30f220", "07", [None, None], 1),  # DROP, 32 THROW: wallets, for methods of others
    ],
)
def test_an_answer_is_recalled_where_all_that_the_run_read_is_equal(
    demo_world: MadeWorld, code: str, data: str, answers: list[int | None], runs: int
) -> None:
    session = GetMethodSession(demo_world, Network(demo_world, 1), None)
    one, other = (make_account(demo_world, make_code(code), make_code(own)) for own in ("", data))
    states = one, other._replace(utime=2000, balance=5)
    with mock.patch.object(session, "answer", wraps=session.answer) as answer:
        assert [ask_about(session, state, 1) for state in states] == answers
    assert answer.call_count == runs


def test_an_answer_holds_until_a_library_is_published(demo_world: MadeWorld) -> None:
    row = {"mc_seqno": 2, "hash": SEVEN.hash, "present": True, "publishers": [bytes(32)]}
    demo_world.tables = {**demo_world.tables, LIBRARIES.name: make_table(LIBRARIES, [row])}
    session = GetMethodSession(demo_world, Network(demo_world, 1), None)
    state = make_account(demo_world, make_library(SEVEN), make_code(""), SEVEN)
    assert [ask_about(session, state, mc_seqno) for mc_seqno in (1, 2)] == [None, 7]


def test_a_library_below_the_root_of_a_code_is_resolved(demo_world: MadeWorld) -> None:
    network = Network(demo_world, 1)
    session = GetMethodSession(demo_world, network, None)
    code = make_code("00", make_library(SEVEN))  # NOP, then a jump into the reference
    state = make_account(demo_world, code, make_code(""))
    question = GetMethod(state.address, "get_wallet_data")
    assert session.answer(question, state, 1) is None
    with mock.patch.object(network, "may_be_public", return_value=True):
        with pytest.raises(NotRun, match=LIBRARY_MISSING):
            session.answer(question, state, 1)
        demo_world.made[SEVEN.hash] = SEVEN
        assert session._list_libraries(code, 1) == {SEVEN.hash: SEVEN.bag()}
        assert session.answer(question, state, 1) == [7]
