"""The contract tab of an account: code, data, terms of what it is, and get-methods to call."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.arguments import GetMethodParams
from tonlake.api.chain.get_method import run_get_method
from tonlake.api.chain.param import read_params
from tonlake.api.errors import ApiError, RequestInvalid
from tonlake.api.explorer.form import write_count, write_moment, write_units
from tonlake.api.explorer.frame import ask_or_say
from tonlake.api.request.params import ConversionError, parse_any_address
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.text.stack import encode_v3
from tonlake.api.v3.route import multisig, nft, vesting
from tonlake.api.v3.route.account import AccountStatesQuery, get_account_states
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import TvmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tonlake.api.explorer.frame import Question
    from tonlake.api.text.address import Address

METHODS = {
    "wallet": ("seqno", "get_public_key", "get_subwallet_id"),
    "jetton_master": ("get_jetton_data", "get_wallet_address"),
    "jetton_wallet": ("get_wallet_data",),
    "nft_item": ("get_nft_data",),
    "nft_collection": ("get_collection_data", "get_nft_address_by_index"),
    "dns": ("get_domain", "dnsresolve", "get_last_fill_up_time"),
    "multisig": ("get_multisig_data", "get_order_address"),
    "multisig_order": ("get_order_data",),
    "vesting": ("get_vesting_data", "get_locked_amount"),
    "sale": ("get_sale_data",),
    "auction": ("get_sale_data",),
}
"""Names to choose from, by a part of the name of an interface; any other may be typed."""

MOST_ORDERS = 20
MOST_CHARACTERS = 20_000
"""Of the code or data that a page shows; the API has all of it."""

_ADDR_STD = 0b100  # addr_std$10 without anycast
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]{1,64}|[0-9]{1,78})")
_CELL = re.compile(r"(cell|slice):([A-Za-z0-9+/_=-]+)")

Values = dict[str, Any]


class Fact(msgspec.Struct, frozen=True):
    """A line of a contract's terms; ``accounts`` are raw addresses, shown after the text."""

    name: str
    text: str = ""
    accounts: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """What a get-method returned; ``error`` where it could not be run."""

    stack: str = ""
    exit_code: int = 0
    gas_used: int = 0
    mc_seqno: int | None = None
    error: str = ""


class Contract(msgspec.Struct, frozen=True):
    """What the contract tab shows; ``rows`` are its terms, by title."""

    rows: list[tuple[str, list[Fact]]]
    code: str
    data: str
    methods: list[str]
    asked: dict[str, str]
    result: Result | None
    newest: str = ""
    older: str = ""


def show_contract(question: Question, address: Address) -> Contract:
    """Return what is known of a contract, and the result of the get-method that is asked for."""
    query = AccountStatesQuery(address=(address,), include_boc=True)
    states = get_account_states(question.call, query).accounts
    interfaces = (states[0].interfaces or []) if states else []
    asked = {name: question.argument(name).strip() for name in ("method", "arguments", "block")}
    return Contract(
        rows=list_terms(question, address, interfaces),
        code=_clip(states[0].code_boc) if states else "",
        data=_clip(states[0].data_boc) if states else "",
        methods=list_methods(interfaces),
        asked=asked,
        result=_run(question, address, asked) if asked["method"] else None,
    )


def _clip(boc: str | msgspec.UnsetType) -> str:
    text = boc if isinstance(boc, str) else ""
    return text if len(text) <= MOST_CHARACTERS else ""


def list_methods(interfaces: Iterable[str]) -> list[str]:
    """Return the get-methods that contracts of these interfaces have."""
    found = [
        name
        for interface in interfaces
        for part, names in METHODS.items()
        if part in interface
        for name in names
    ]
    return list(dict.fromkeys(found))


def _run(question: Question, address: Address, asked: dict[str, str]) -> Result:
    """Run a get-method; what the reader has typed is no reason to show no page."""
    try:
        seqno = _read_block(asked["block"])
        values = {"address": str(address), "method": asked["method"], "seqno": seqno}
        params = read_params(GetMethodParams, values)
        params.check(1)
        state, outcome = run_get_method(
            question.call, params, params.method, read_stack(asked["arguments"])
        )
        stack = [encode_v3(value) for value in outcome.stack]
    except (ApiError, TvmError) as error:
        return Result(error=str(error))
    text = msgspec.json.format(msgspec.json.encode(stack), indent=2).decode()
    return Result(
        text[:MOST_CHARACTERS], outcome.exit_code, outcome.gas_used, state.master["seqno"]
    )


def _read_block(text: str) -> int | None:
    digits = text.replace(",", "")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):  # noqa: PLR2004
        raise RequestInvalid("the block is the seqno of a masterchain block")
    return int(digits)


def read_stack(text: str) -> list[Any]:
    """Return arguments as the API takes them: numbers, addresses, and bags of cells.

    Raises:
        RequestInvalid: one is none of these.
    """
    return [_read_argument(each) for each in text.replace(",", " ").split()]


def _read_argument(text: str) -> dict[str, str]:
    if _NUMBER.fullmatch(text):
        return {"type": "num", "value": text}
    if match := _CELL.fullmatch(text):
        return {"type": match[1], "value": match[2]}
    try:
        address = parse_any_address(text)
    except ConversionError as error:
        raise RequestInvalid(
            f"{text[:80]!r} is no number, no address, and no cell:BASE64 or slice:BASE64"
        ) from error
    builder = CellBuilder().store_uint(_ADDR_STD, 3).store_int(address.workchain, 8)
    root = builder.store_bytes(address.account).end()
    return {"type": "slice", "value": encode_bytes(serialize_boc(builder.tree, [root]))}


def list_terms(
    question: Question, address: Address, interfaces: Iterable[str]
) -> list[tuple[str, list[Fact]]]:
    """Return the terms of each thing that a contract is, by title."""
    names = " ".join(interfaces)
    found: list[tuple[str, list[Fact]]] = []
    for part, title, describe in _TERMS:
        if part in names:
            terms = ask_or_say(partial(describe, question, address))
            known = [[Fact("Not in the lake", terms)]] if isinstance(terms, str) else terms
            found += [(title, facts) for facts in known]
    return found


def _describe_multisig(question: Question, address: Address) -> list[list[Fact]]:
    query = multisig.WalletsQuery(address=(address,), include_orders=True, limit=1, offset=0)
    found = multisig.get_wallets(question.call, query)
    question.names.learn(found.address_book)
    return [
        [
            Fact("Threshold", f"{one.threshold} of {len(one.signers)} signers"),
            Fact("Signers", accounts=tuple(one.signers)),
            Fact("Proposers", accounts=tuple(one.proposers)),
            Fact("Next order", one.next_order_seqno or "any number"),
            *(_name_order(order) for order in (one.orders or [])[:MOST_ORDERS]),
        ]
        for one in found.multisigs
    ]


def _name_order(order: multisig.MultisigOrder) -> Fact:
    state = "executed" if order.sent_for_execution else "open"
    text = f"{state}, {order.approvals_num or 0} of {order.threshold} approvals"
    if order.expiration_date and not order.sent_for_execution:
        text += f", expires {write_moment(order.expiration_date)}"
    return Fact(f"Order {order.order_seqno}", text, (order.address,))


def _describe_order(question: Question, address: Address) -> list[list[Fact]]:
    query = multisig.OrdersQuery(address=(address,), limit=1, offset=0)
    found = multisig.get_orders(question.call, query)
    question.names.learn(found.address_book)
    return [
        [
            Fact("Multisig", accounts=(one.multisig_address,)),
            _name_order(one),
            Fact("Signers", accounts=tuple(one.signers or ())),
        ]
        for one in found.orders
    ]


def _describe_vesting(question: Question, address: Address) -> list[list[Fact]]:
    query = vesting.VestingQuery(contract_address=(address,), limit=1, offset=0)
    found = vesting.get_vesting(question.call, query)
    question.names.learn(found.address_book)
    return [_write_schedule(one) for one in found.vesting_contracts]


def _write_schedule(one: vesting.VestingInfo) -> list[Fact]:
    facts = [
        Fact("Total", f"{write_units(one.total_amount)} TON"),
        Fact("Owner", accounts=(one.owner_address,) if one.owner_address else ()),
        Fact("Sender", accounts=(one.sender_address,) if one.sender_address else ()),
        Fact("Whitelist", "" if one.whitelist else "empty", tuple(one.whitelist)),
    ]
    if one.start_time is None or one.total_duration is None:
        return facts
    start, end = one.start_time, one.start_time + one.total_duration
    facts.append(Fact("Begins", write_moment(start)))
    if one.cliff_duration:
        facts.append(Fact("Nothing is unlocked before", write_moment(start + one.cliff_duration)))
    if one.unlock_period:
        parts = one.total_duration // one.unlock_period
        facts.append(Fact("Unlocks", f"in {write_count(parts)} equal parts"))
    return [*facts, Fact("Ends", write_moment(end))]


_TIMES = ("_time", "_at")
_COINS = ("price", "bid", "fee", "royalty_amount", "marketplace_fee")


def _describe_sale(question: Question, address: Address) -> list[list[Fact]]:
    found = nft.get_sales(question.call, nft.SalesQuery(address=(address,)))
    question.names.learn(found.address_book, found.metadata)
    sales = []
    for one in found.nft_sales:
        accounts = {
            "NFT": one.nft_address,
            "Owner": one.nft_owner_address,
            "Marketplace": one.marketplace_address,
        }
        facts = [Fact(name, accounts=(raw,)) for name, raw in accounts.items() if raw]
        sales.append([*facts, *(_write_term(*pair) for pair in one.details.items())])
    return sales


def _write_term(name: str, value: object) -> Fact:
    title, text = name.replace("_", " ").capitalize(), _write_plain(value)
    if re.fullmatch(r"-?[0-9]+:[0-9A-Fa-f]{64}", text):
        return Fact(title, accounts=(text,))
    if text.isdecimal() and name.endswith(_TIMES) and int(text):
        return Fact(title, write_moment(text))
    if text.isdecimal() and any(word in name for word in _COINS):
        return Fact(title, f"{write_units(text)} TON")
    return Fact(title, text)


def _write_plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else str(value)


_TERMS: tuple[tuple[str, str, Callable[[Question, Address], list[list[Fact]]]], ...] = (
    ("multisig_v", "Multisig wallet", _describe_multisig),
    ("order", "Multisig order", _describe_order),
    ("vesting", "Vesting", _describe_vesting),
    ("sale", "Sale", _describe_sale),
    ("auction", "Auction", _describe_sale),
)
"""By a part of the name of an interface: the title, and who asks for the terms."""
