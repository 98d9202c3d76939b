"""Jettons (TEP-74, TEP-89 by get_wallet_address): masters and wallets, and their data cells.

Minter: total_supply:Coins admin:MsgAddress content:^Cell wallet_code:^Cell. Wallet: balance:Coins
owner:MsgAddress master:MsgAddress wallet_code:^Cell; that of governed jettons has no wallet_code,
and its first version begins with a status:uint4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract.layout import (
    TRUE,
    expect_arguments,
    expect_end,
    hash_state_init,
    load_address_slice,
    make_cell,
    store_address,
    take_address,
)
from tonlake.ingest.derive.contract.stack import (
    Address,
    Cell,
    Finding,
    Mismatch,
    Question,
    Results,
    address_fields,
)
from tonlake.ingest.derive.contract.standard.content import read_content
from tonlake.lake.schema.contract import JETTON_MASTERS, JETTON_WALLETS

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.layout import Reader, Subject
    from tonlake.ingest.derive.contract.stack import Detection, Value


def detect_master(me: Address) -> Detection:
    """Ask get_jetton_data: total supply, mintable flag, administrator, content, wallet code."""
    answer = Results((yield Question(me, "get_jetton_data")), 5)
    supply, mintable, admin = answer.amount(), answer.boolean(), answer.address()
    content, wallet_code = answer.cell(), answer.cell()
    fields = {
        "total_supply": supply,
        "mintable": mintable,
        **address_fields("admin", admin),
        "content": read_content(content.tree, content.root),
        "wallet_code_hash": wallet_code.hash,
    }
    return [Finding(JETTON_MASTERS.name, fields)]


def detect_wallet(me: Address) -> Detection:
    """Ask get_wallet_data of a wallet, and get_wallet_address of its master.

    For wallets of mintless jettons, is_claimed shows whether the airdrop was claimed.
    """
    answer = Results((yield Question(me, "get_wallet_data")), 4)
    balance, owner, jetton = answer.amount(), answer.required_address(), answer.required_address()
    answer.cell()
    named = Results((yield Question(jetton, "get_wallet_address", (owner.slice(),))), 1)
    if named.address() != me:
        raise Mismatch("the master returns another wallet")
    claimed = yield Question(me, "is_claimed", required=False)
    fields = {
        "balance": balance,
        **address_fields("owner", owner),
        **address_fields("jetton", jetton),
        "is_claimed": None if claimed is None else Results(claimed, 1).boolean(),
    }
    return [Finding(JETTON_WALLETS.name, fields)]


_STATUS_BITS = 4


def _answer_wallet(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    balance, owner = start.load_coins(), load_address_slice(start)
    return [balance, owner, load_address_slice(start), make_cell(start)]


def _answer_governed_wallet(subject: Subject, *, status_bits: int = 0) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    start.skip(status_bits)
    balance, owner = start.load_coins(), load_address_slice(start)
    jetton = load_address_slice(start)
    expect_end(start)
    return [balance, owner, jetton, subject.code]


def _answer_minter(subject: Subject) -> list[Value]:
    start = expect_arguments(subject, 0).data.slice()
    supply, admin = start.load_coins(), load_address_slice(start)
    return [supply, TRUE, admin, make_cell(start), make_cell(start)]


def _answer_address(subject: Subject) -> list[Value]:
    """Compute the address of an owner's wallet, in the basechain."""
    owner = take_address(expect_arguments(subject, 1).arguments[0])
    start = subject.data.slice()
    start.load_ref()
    code = Cell(start.tree, start.load_ref())
    data = CellBuilder(start.tree).store_coins(0)
    store_address(store_address(data, owner), subject.address).store_ref(code.root)
    return [Address(0, hash_state_init(code, data)).slice()]


_WALLET, _MINTER = "get_wallet_data", "get_jetton_data"
_PLAIN_WALLET = "beb0683ebeb8927fe9fc8ec0a18bc7dd17899689825a121eab46c5a3a860d0ce"
_PLAIN_MINTER = "9a0f98dd6fbf225eef8165e4e64417ee931f7eea000653439e7b5dcdc0644cd6"
_GOVERNED = "346250c205f56acfb6afa6fe7b76550805d256c6d8e47dd4f94ff672b47d19d3"
_WITH_STATUS = "89468f02c78e570802e39979c8516fc38df07ea76a48357e0536f2ba7b3ee37b"
READERS: dict[tuple[str, str], Reader] = {
    (_PLAIN_WALLET, _WALLET): _answer_wallet,
    (_GOVERNED, _WALLET): _answer_governed_wallet,
    (_WITH_STATUS, _WALLET): partial(_answer_governed_wallet, status_bits=_STATUS_BITS),
    (_PLAIN_MINTER, _MINTER): _answer_minter,
    (_PLAIN_MINTER, "get_wallet_address"): _answer_address,
}
"""By code hash in hex (of the library cell if the code is one) and method."""
