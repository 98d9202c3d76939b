"""Renders the contract tab of an account: terms, code, data, and get-methods to call."""

import base64
import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice, starmap
from typing import Any

import msgspec

from tonlake.api.chain.account import AccountAtBlock
from tonlake.api.chain.arguments import GetMethodParams, read_params
from tonlake.api.chain.run import read_libraries, run_get_method
from tonlake.api.errors import ApiError
from tonlake.api.explorer.frame import ListPage, PageRequest, ask_or_say, convert
from tonlake.api.explorer.network import decode_data
from tonlake.api.explorer.words.assembly import disassemble
from tonlake.api.explorer.words.body import unwrap
from tonlake.api.explorer.words.form import write_moment, write_units
from tonlake.api.explorer.words.outcome import explain_exit_code
from tonlake.api.request.call import parse_any_address, parse_int32
from tonlake.api.text.encoding import Address, encode_bytes, parse_address, read_argument
from tonlake.api.v3.page.book import write_address_book
from tonlake.api.v3.page.history import read_contracts
from tonlake.api.v3.page.listed import list_addresses, render_rows
from tonlake.api.v3.route import contract, token
from tonlake.api.v3.route.account import AccountStatesQuery, get_account_states
from tonlake.api.v3.route.contract import DNSRecord
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.contract.record import find_method_ids, load_interfaces
from tonlake.ingest.derive.tvm.call import NO_CODE, SUCCESS, Outcome, TvmCell, method_id
from tonlake.ingest.errors import TvmError

Terms = str | dict[str, Any]
"""What a macro of ``terms.html`` shows of a contract, or why it is unknown."""


def call_method(
    question: PageRequest, address: Address, method: str, arguments: str = "", block: str = ""
) -> tuple[AccountAtBlock, Outcome] | str:
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
_UNKNOWN = "unknown: the data of this contract has another form"


def _ask_nominators(question: PageRequest, address: Address) -> list[Terms]:
    """Return the terms and members of a nominator pool, decoded from its data."""
    query = AccountStatesQuery(address=(address,), include_boc=True)
    states = get_account_states(question.call, query).accounts
    data = states[0].data_boc if states else None
    bag = base64.b64decode(data) if isinstance(data, str) else None
    found = None if bag is None else decode_data("NominatorPool", bag)
    if found is None:
        return [_UNKNOWN]
    pool = unwrap(found)
    members = pool["nominators"] or {}
    listed = list_members(members.items(), {"pending_deposit": "pending"})
    return [{"pool": pool, "count": len(members), "members": listed}]


_WAITING = {
    "pending_deposit": "deposit pending",
    "pending_withdraw": "withdrawal pending",
    "withdraw": "ready to be withdrawn",
}
"""Amounts of a Whales pool member besides its stake, with their labels."""


def _ask_whales(question: PageRequest, address: Address) -> list[Terms]:
    """Return the members of a Whales pool, from its get-method ``get_members_raw``."""
    called = call_method(question, address, "get_members_raw")
    if isinstance(called, str):
        return [f"unknown: {called}"]
    outcome = called[1]
    found = outcome.stack[-1] if outcome.exit_code in SUCCESS and outcome.stack else None
    if outcome.exit_code in SUCCESS and outcome.stack == (None,):
        return ["none"]
    members = decode_data("WhalesMembers", found.boc) if isinstance(found, TvmCell) else None
    if members is None:
        return [_UNKNOWN]
    values = unwrap(members)["members"]
    return [{"count": len(values), "members": list_members(values.items(), _WAITING)}]


def list_members(
    members: Iterable[tuple[str, dict[str, str]]], waiting: dict[str, str]
) -> list[tuple[str, str]]:
    """Return members: stake with nonzero amounts named in ``waiting``, and raw address."""
    found = []
    for account, each in islice(members, MAX_MEMBERS):
        parts = [each["amount"], *(f"{each[name]} {text}" for name, text in waiting.items())]
        text = ", ".join(part for part in parts if not part.startswith(_NOTHING))
        found.append((text or _NOTHING, f"0:{account.upper()}"))
    return found


def _ask_liquid(question: PageRequest, address: Address) -> list[Terms]:
    """Return the jetton whose admin a staking pool is, and its largest holders, the members."""
    asked = token.MastersQuery(admin_address=(address,), limit=1, offset=0)
    masters = question.ask(token.get_masters, asked).jetton_masters
    if not masters:
        return ["unknown: the lake knows no jetton of this pool"]
    master = masters[0].address
    query = token.WalletsQuery(
        jetton_address=(parse_address(master),),
        exclude_zero_balance=True,
        sort="desc",
        limit=MAX_MEMBERS,
        offset=0,
    )
    holders = question.ask(token.get_wallets, query).jetton_wallets
    return [{"master": master, "holders": [each for each in holders if each.owner]}]


DOMAIN_S = 366 * 86400
"""A domain that is not renewed for this long becomes free (``one_year`` of its contract)."""


def list_terms(
    question: PageRequest, address: Address, interfaces: Iterable[str]
) -> list[tuple[str, str, Terms]]:
    """Return title, macro of ``terms.html`` and terms of a contract for each interface."""
    names = " ".join(interfaces)
    found: list[tuple[str, str, Terms]] = []
    for part, title, macro, ask in _TERMS:
        if part in names:
            known = ask_or_say(partial(ask, question, address))
            if isinstance(known, str):
                found.append((title, "lacking", known))
            else:
                found += [(title, macro, terms) for terms in known]
    return found


def _ask_multisig(question: PageRequest, address: Address) -> list[Terms]:
    query = contract.MultisigsQuery(address=(address,), include_orders=True, limit=1, offset=0)
    return [{"one": one} for one in question.ask(contract.get_multisigs, query).multisigs]


def _ask_order(question: PageRequest, address: Address) -> list[Terms]:
    query = contract.OrdersQuery(address=(address,), parse_actions=True, limit=1, offset=0)
    orders = question.ask(contract.get_orders, query).orders
    return [{"one": one, "signers": split_signers(one)} for one in orders]


def split_signers(order: contract.MultisigOrder) -> tuple[list[str], list[str]]:
    """Return the signers who have not approved an order, by the bits of its mask, and who have."""
    mask = int(order.approvals_mask or 0)
    lists: tuple[list[str], list[str]] = ([], [])
    for at, signer in enumerate(order.signers or ()):
        lists[mask >> at & 1].append(signer)
    return lists


def _ask_vesting(question: PageRequest, address: Address) -> list[Terms]:
    query = contract.VestingQuery(contract_address=(address,), limit=1, offset=0)
    return [{"one": one} for one in question.ask(contract.get_vesting, query).vesting_contracts]


def _ask_jetton_wallet(question: PageRequest, address: Address) -> list[Terms]:
    query = token.WalletsQuery(address=(address,), limit=1, offset=0)
    return [{"one": one} for one in question.ask(token.get_wallets, query).jetton_wallets]


_TIMES = ("_time", "_at")
_COINS = ("price", "bid", "fee", "royalty_amount", "marketplace_fee")


def _ask_sale(question: PageRequest, address: Address) -> list[Terms]:
    sales = question.ask(token.get_sales, token.SalesQuery(address=(address,))).nft_sales
    return [{"one": one, "details": starmap(write_term, one.details.items())} for one in sales]


def write_term(name: str, value: object) -> tuple[str, str, tuple[str, ...]]:
    """Return title, text and accounts of a detail of a sale."""
    title, text = name.replace("_", " ").capitalize(), "unknown" if value is None else str(value)
    if isinstance(value, bool):
        return title, "yes" if value else "no", ()
    if re.fullmatch(r"-?[0-9]+:[0-9A-Fa-f]{64}", text):
        return title, "", (text,)
    if text.isdecimal() and name.endswith(_TIMES) and int(text):
        text = write_moment(text)
    elif text.isdecimal() and any(word in name for word in _COINS):
        text = f"{write_units(text)} TON"
    return title, text, ()


def _ask_domain(question: PageRequest, address: Address) -> list[Terms]:
    rows = read_contracts(question.call, "dns_records", (address,), limit=1)
    question.names.learn(write_address_book(question.call, list_addresses(DNSRecord, rows)))
    records = render_rows(DNSRecord, rows)
    return [{"one": one, "expiry": _find_expiry(question, address)} for one in records]


def _find_expiry(question: PageRequest, address: Address) -> str:
    """Return when a domain becomes free, from its last renewal (TEP-81 get-method)."""
    called = call_method(question, address, "get_last_fill_up_time")
    if isinstance(called, str):
        return f"unknown: {called}"
    outcome = called[1]
    if outcome.exit_code not in SUCCESS or not outcome.stack or type(outcome.stack[-1]) is not int:
        return "never: its contract has no time of renewal"
    return write_moment(outcome.stack[-1] + DOMAIN_S)


_TERMS: tuple[tuple[str, str, str, Callable[[PageRequest, Address], list[Terms]]], ...] = (
    ("jetton_wallet", "Jetton wallet", "jetton_wallet", _ask_jetton_wallet),
    ("multisig_v", "Multisig wallet", "multisig", _ask_multisig),
    ("order", "Multisig order", "order", _ask_order),
    ("vesting", "Vesting", "vesting", _ask_vesting),
    ("sale", "Sale", "sale", _ask_sale),
    ("auction", "Auction", "sale", _ask_sale),
    ("dns", "Domain", "domain", _ask_domain),
    ("tv_pool", "Nominator pool", "nominators", _ask_nominators),
    ("whales_pool", "Staking pool", "whales", _ask_whales),
    ("tonstake_pool", "Liquid staking pool", "liquid", _ask_liquid),
)
"""By substring of the interface name: title, macro of ``terms.html``, and function of its terms."""


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
    """The contract tab; ``rows`` are those of `list_terms`, ``assembly`` an instruction a line."""

    assembly: str
    code: str
    data: str
    methods: list[str]
    asked: dict[str, str]
    result: tuple[AccountAtBlock, Outcome] | str | None
    """What the requested get-method returned, or why it was not run."""

    meaning: str
    """Meaning of the exit code; "" if unknown or successful."""


def show_contract(question: PageRequest, address: Address) -> Contract:
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


def _read_codes(question: PageRequest, boc: str | msgspec.UnsetType | None) -> dict[bytes, bytes]:
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
