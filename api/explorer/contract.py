"""Renders the contract tab of an account: terms, code, data, and get-methods to call."""

import base64
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from tonlake.api.chain.account import AccountState
from tonlake.api.chain.arguments import GetMethodParams, read_params
from tonlake.api.chain.configuration import decode_data
from tonlake.api.chain.run import read_libraries, run_get_method
from tonlake.api.errors import ApiError
from tonlake.api.explorer.frame import ListPage, Question, ask_or_say, convert
from tonlake.api.explorer.words.assembly import disassemble
from tonlake.api.explorer.words.body import unwrap
from tonlake.api.explorer.words.form import write_count, write_hex, write_moment, write_units
from tonlake.api.explorer.words.outcome import explain_exit_code
from tonlake.api.request.call import parse_any_address, parse_int32
from tonlake.api.text.encoding import Address, encode_bytes, parse_address, read_argument
from tonlake.api.v3.page.book import write_address_book
from tonlake.api.v3.page.history import read_contracts
from tonlake.api.v3.page.listed import list_addresses, render_rows
from tonlake.api.v3.resource.order import OrderAction
from tonlake.api.v3.route import contract, token
from tonlake.api.v3.route.account import AccountStatesQuery, get_account_states
from tonlake.api.v3.route.contract import DNSRecord
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.contract.record import find_method_ids, load_interfaces
from tonlake.ingest.derive.tvm.call import NO_CODE, SUCCESS, Outcome, TvmCell, method_id
from tonlake.ingest.errors import TvmError


class Fact(msgspec.Struct, frozen=True):
    """A named fact about a contract; ``accounts`` are raw addresses, shown after the text."""

    name: str
    text: str = ""
    accounts: tuple[str, ...] = ()


def _name(title: str, *raws: str | msgspec.UnsetType | None) -> Fact:
    """Return a fact that consists of accounts; None and UNSET are left out."""
    return Fact(title, accounts=tuple(raw for raw in raws if raw))


def call_method(
    question: Question, address: Address, method: str, arguments: str = "", block: str = ""
) -> tuple[AccountState, Outcome] | str:
    """Return the state and the outcome of a get-method, or the reason why it did not run."""
    try:
        refusal = "the block is the seqno of a masterchain block"
        seqno = convert(block.replace(",", ""), parse_int32, refusal) if block else None
        values = {"address": str(address), "method": method, "seqno": seqno}
        params = read_params(GetMethodParams, values)
        params.check(1)
        return run_get_method(question.call, params, params.method, read_stack(arguments))
    except (ApiError, TvmError) as error:
        return str(error)


MAX_MEMBERS = 100

_NOTHING = "0 TON"
_UNKNOWN = [[Fact("Members", "unknown: the data of this contract has another form")]]


def describe_nominators(question: Question, address: Address) -> list[list[Fact]]:
    """Return the terms and members of a nominator pool, decoded from its data."""
    query = AccountStatesQuery(address=(address,), include_boc=True)
    states = get_account_states(question.call, query).accounts
    data = states[0].data_boc if states else None
    bag = base64.b64decode(data) if isinstance(data, str) else None
    found = None if bag is None else decode_data("NominatorPool", bag)
    if found is None:
        return _UNKNOWN
    pool = unwrap(found)
    members = pool["nominators"] or {}
    facts = [
        _name("Validator", f"-1:{pool['config']['validator_address']}"),
        Fact("Stake of the validator", pool["validator_amount"]),
        Fact("Sent to the elector", pool["stake_amount_sent"]),
        Fact("Members", f"{len(members):,} of {pool['config']['max_nominators_count']}"),
    ]
    return [facts + list_members(members.items(), {"pending_deposit": "pending"})]


_WAITING = {
    "pending_deposit": "deposit pending",
    "pending_withdraw": "withdrawal pending",
    "withdraw": "ready to be withdrawn",
}
"""Amounts of a Whales pool member besides its stake, with their labels."""


def describe_whales(question: Question, address: Address) -> list[list[Fact]]:
    """Return the members of a Whales pool, from its get-method ``get_members_raw``."""
    called = call_method(question, address, "get_members_raw")
    if isinstance(called, str):
        return [[Fact("Members", f"unknown: {called}")]]
    outcome = called[1]
    found = outcome.stack[-1] if outcome.exit_code in SUCCESS and outcome.stack else None
    if outcome.exit_code in SUCCESS and outcome.stack == (None,):
        return [[Fact("Members", "none")]]
    members = decode_data("WhalesMembers", found.boc) if isinstance(found, TvmCell) else None
    if members is None:
        return _UNKNOWN
    values = unwrap(members)["members"]
    return [[Fact("Members", f"{len(values):,}"), *list_members(values.items(), _WAITING)]]


def list_members(
    members: Iterable[tuple[str, dict[str, str]]], waiting: dict[str, str]
) -> list[Fact]:
    """Return one fact per member: its stake and its nonzero amounts named in ``waiting``."""
    facts = []
    for account, each in members:
        parts = [each["amount"], *(f"{each[name]} {text}" for name, text in waiting.items())]
        text = ", ".join(part for part in parts if not part.startswith(_NOTHING))
        facts.append(Fact("Member", text or _NOTHING, (f"0:{account.upper()}",)))
        if len(facts) == MAX_MEMBERS:
            break
    return facts


def describe_liquid(question: Question, address: Address) -> list[list[Fact]]:
    """Return the jetton whose admin a staking pool is, and its largest holders, the members."""
    asked = token.MastersQuery(admin_address=(address,), limit=1, offset=0)
    masters = question.ask(token.get_masters, asked).jetton_masters
    if not masters:
        return [[Fact("Members", "unknown: the lake knows no jetton of this pool")]]
    master = masters[0].address
    query = token.WalletsQuery(
        jetton_address=(parse_address(master),),
        exclude_zero_balance=True,
        sort="desc",
        limit=MAX_MEMBERS,
        offset=0,
    )
    holders = question.ask(token.get_wallets, query).jetton_wallets
    members = [
        Fact("Member", question.names.amount(each.balance, master), (each.owner,))
        for each in holders
        if each.owner
    ]
    return [[_name("Members hold the jetton", master), *members]]


MAX_ORDERS = 20
DOMAIN_S = 366 * 86400
"""A domain that is not renewed for this long becomes free (``one_year`` of its contract)."""


def list_terms(
    question: Question, address: Address, interfaces: Iterable[str]
) -> list[tuple[str, list[Fact]]]:
    """Return the terms of a contract for each of its interfaces, by title."""
    names = " ".join(interfaces)
    found: list[tuple[str, list[Fact]]] = []
    for part, title, describe in _TERMS:
        if part in names:
            terms = ask_or_say(partial(describe, question, address))
            known = [[Fact("Not in the lake", terms)]] if isinstance(terms, str) else terms
            found += [(title, facts) for facts in known]
    return found


def _describe_multisig(question: Question, address: Address) -> list[list[Fact]]:
    query = contract.MultisigsQuery(address=(address,), include_orders=True, limit=1, offset=0)
    return [
        [
            Fact("Threshold", f"{one.threshold} of {len(one.signers)} signers"),
            _name("Signers", *one.signers),
            _name("Proposers", *one.proposers),
            Fact("Next order", one.next_order_seqno or "any number"),
            *(_name_order(order) for order in (one.orders or [])[:MAX_ORDERS]),
        ]
        for one in question.ask(contract.get_multisigs, query).multisigs
    ]


def _name_order(order: contract.MultisigOrder, *, linked: bool = True) -> Fact:
    state = "executed" if order.sent_for_execution else "open"
    text = f"{state}, {order.approvals_num or 0} of {order.threshold} approvals"
    if order.expiration_date and not order.sent_for_execution:
        text += f", expires {write_moment(order.expiration_date)}"
    return Fact(f"Order {order.order_seqno}", text, (order.address,) if linked else ())


def _describe_order(question: Question, address: Address) -> list[list[Fact]]:
    query = contract.OrdersQuery(address=(address,), parse_actions=True, limit=1, offset=0)
    return [
        [
            _name("Multisig", one.multisig_address),
            _name_order(one, linked=False),
            *_list_approvals(one),
            *(_write_action(*each) for each in enumerate((one.actions or [])[:MAX_ORDERS], 1)),
        ]
        for one in question.ask(contract.get_orders, query).orders
    ]


def _list_approvals(order: contract.MultisigOrder) -> list[Fact]:
    """Return the signers who approved an order, by the bits of its mask, and the others."""
    mask = int(order.approvals_mask or 0)
    lists: tuple[list[str], list[str]] = ([], [])
    for at, signer in enumerate(order.signers or ()):
        lists[mask >> at & 1].append(signer)
    waiting, approved = lists
    return [_name("Approved by", *approved), _name("Not approved by", *waiting)]


def _write_action(number: int, action: OrderAction) -> Fact:
    """Describe an action of an order: a message to send, or a change of the multisig itself."""
    text = (action.parsed_body_type or "message").replace("_", " ")
    comment = (action.parsed_body or {}).get("comment")
    if isinstance(comment, str) and comment:
        text += f" “{comment}”"
    if action.value is not None:
        text += f", {write_units(action.value)} TON"
    if action.destination is None:
        return Fact(f"Action {number}", text)
    return Fact(f"Action {number}", f"{text}, to", (action.destination,))


def _describe_vesting(question: Question, address: Address) -> list[list[Fact]]:
    query = contract.VestingQuery(contract_address=(address,), limit=1, offset=0)
    found = question.ask(contract.get_vesting, query)
    return [_write_schedule(one) for one in found.vesting_contracts]


def _write_schedule(one: contract.VestingInfo) -> list[Fact]:
    facts = [
        Fact("Total", f"{write_units(one.total_amount)} TON"),
        _name("Owner", one.owner_address),
        _name("Sender", one.sender_address),
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


def _describe_jetton_wallet(question: Question, address: Address) -> list[list[Fact]]:
    query = token.WalletsQuery(address=(address,), limit=1, offset=0)
    wallets = question.ask(token.get_wallets, query).jetton_wallets
    return [
        [
            _name("Owner", one.owner),
            _name("Jetton", one.jetton),
            Fact("Balance", question.names.amount(one.balance, one.jetton)),
        ]
        for one in wallets
    ]


_TIMES = ("_time", "_at")
_COINS = ("price", "bid", "fee", "royalty_amount", "marketplace_fee")


def _describe_sale(question: Question, address: Address) -> list[list[Fact]]:
    sales = []
    for one in question.ask(token.get_sales, token.SalesQuery(address=(address,))).nft_sales:
        named = (
            _name("NFT", one.nft_address),
            _name("Owner", one.nft_owner_address),
            _name("Marketplace", one.marketplace_address),
        )
        facts = [fact for fact in named if fact.accounts]
        sales.append([*facts, *(_write_term(*pair) for pair in one.details.items())])
    return sales


def _write_term(name: str, value: object) -> Fact:
    title, text = name.replace("_", " ").capitalize(), "unknown" if value is None else str(value)
    if isinstance(value, bool):
        return Fact(title, "yes" if value else "no")
    if re.fullmatch(r"-?[0-9]+:[0-9A-Fa-f]{64}", text):
        return _name(title, text)
    if text.isdecimal() and name.endswith(_TIMES) and int(text):
        return Fact(title, write_moment(text))
    if text.isdecimal() and any(word in name for word in _COINS):
        return Fact(title, f"{write_units(text)} TON")
    return Fact(title, text)


def _describe_domain(question: Question, address: Address) -> list[list[Fact]]:
    rows = read_contracts(question.call, "dns_records", (address,), limit=1)
    question.names.learn(write_address_book(question.call, list_addresses(DNSRecord, rows)))
    domains = [
        (
            Fact("Domain", one.domain),
            _name("Owner", one.nft_item_owner),
            _name("Wallet", one.dns_wallet),
            _name("Subdomains are resolved by", one.dns_next_resolver),
            Fact("Site (ADNL)", write_hex(one.dns_site_adnl or "")),
            Fact("Storage bag", (one.dns_storage_bag_id or "").lower()),
            Fact("Expires", _find_expiry(question, address)),
        )
        for one in render_rows(DNSRecord, rows)
    ]
    return [[fact for fact in facts if fact.text or fact.accounts] for facts in domains]


def _find_expiry(question: Question, address: Address) -> str:
    """Return when a domain becomes free, from its last renewal (TEP-81 get-method)."""
    called = call_method(question, address, "get_last_fill_up_time")
    if isinstance(called, str):
        return f"unknown: {called}"
    outcome = called[1]
    if outcome.exit_code not in SUCCESS or not outcome.stack or type(outcome.stack[-1]) is not int:
        return "never: its contract has no time of renewal"
    return write_moment(outcome.stack[-1] + DOMAIN_S)


_TERMS: tuple[tuple[str, str, Callable[[Question, Address], list[list[Fact]]]], ...] = (
    ("jetton_wallet", "Jetton wallet", _describe_jetton_wallet),
    ("multisig_v", "Multisig wallet", _describe_multisig),
    ("order", "Multisig order", _describe_order),
    ("vesting", "Vesting", _describe_vesting),
    ("sale", "Sale", _describe_sale),
    ("auction", "Auction", _describe_sale),
    ("dns", "Domain", _describe_domain),
    ("tv_pool", "Nominator pool", describe_nominators),
    ("whales_pool", "Staking pool", describe_whales),
    ("tonstake_pool", "Liquid staking pool", describe_liquid),
)
"""By substring of the interface name: title and the function that returns the terms."""


METHODS = (
    *("get_nft_content", "royalty_params", "get_editor", "get_locked_amount"),
    *("get_domain", "get_last_fill_up_time", "get_auction_info", "get_authority_address"),
)
"""Names of get-methods besides those that identify interfaces."""

MAX_CHARACTERS = 20_000
"""Maximum length of code or data on a page; the API returns all of it."""

CODE = b""
"""Key of the account's own code, next to libraries by hash."""

_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]{1,64}|[0-9]{1,78})")
_CELL = re.compile(r"(cell|slice):([A-Za-z0-9+/_=-]+)")


class Contract(ListPage, frozen=True, kw_only=True):
    """The contract tab; ``rows`` are titles with facts, ``assembly`` one instruction per line."""

    assembly: str
    code: str
    data: str
    methods: list[str]
    asked: dict[str, str]
    result: tuple[AccountState, Outcome] | str | None
    """What the requested get-method returned, or why it was not run."""

    meaning: str
    """Meaning of the exit code; "" if unknown or successful."""


def show_contract(question: Question, address: Address) -> Contract:
    """Return the content of the contract tab, with the result of the requested get-method."""
    query = AccountStatesQuery(address=(address,), include_boc=True)
    states = get_account_states(question.call, query).accounts
    interfaces = (states[0].interfaces or []) if states else []
    asked = {name: question.argument(name).strip() for name in ("method", "arguments", "block")}
    codes = _read_codes(question, states[0].code_boc) if states else {}
    methods = list_methods(codes.values())
    result = call_method(question, address, **asked) if asked["method"] else None
    exit_code = result[1].exit_code if isinstance(result, tuple) else 0
    return Contract(
        rows=list_terms(question, address, interfaces),
        assembly=disassemble(codes[CODE], methods, codes) if codes else "",
        code=_clip(states[0].code_boc) if states else "",
        data=_clip(states[0].data_boc) if states else "",
        methods=methods,
        asked=asked,
        result=result,
        meaning="the account had no code"
        if exit_code == NO_CODE
        else explain_exit_code(exit_code, interfaces),
    )


def _read_codes(question: Question, boc: str | msgspec.UnsetType | None) -> dict[bytes, bytes]:
    """Return the code under ``CODE`` and its libraries, as far as the lake has them, by hash."""
    if not isinstance(boc, str):
        return {}
    code = base64.b64decode(boc)
    newest = question.call.reader.snapshot.ranges[-1][-1]
    _, libraries = read_libraries(question.call, newest, [code])
    return {CODE: code} | libraries


def _clip(boc: str | msgspec.UnsetType) -> str:
    text = boc if isinstance(boc, str) else ""
    return text if len(text) <= MAX_CHARACTERS else ""


def list_methods(codes: Iterable[bytes]) -> list[str]:
    """Return the known names of get-methods in ``codes`` (bags of cells)."""
    names = load_interfaces().methods | {method_id(name): name for name in METHODS}
    trees = map(parse_boc, codes)
    found = (find_method_ids(tree, tree.roots[0]) or () for tree in trees)
    return sorted({names[number] for ids in found for number in ids if number in names})


def read_stack(text: str) -> list[Any]:
    """Convert arguments to stack entries: numbers, addresses, bags; RequestInvalid for others."""
    return [_read_argument(each) for each in text.replace(",", " ").split()]


def _read_argument(text: str) -> dict[str, str]:
    if _NUMBER.fullmatch(text):
        return {"type": "num", "value": text}
    if match := _CELL.fullmatch(text):
        return {"type": match[1], "value": match[2]}
    refusal = f"{text[:80]!r} is not a number, an address, cell:BASE64 or slice:BASE64"
    address = read_argument(str(convert(text, parse_any_address, refusal)))
    return {"type": "slice", "value": encode_bytes(address.boc)}
