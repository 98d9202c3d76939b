"""Describes staking pools: their terms, members and stakes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tonlake.api.chain.configuration import decode_members, decode_pool
from tonlake.api.explorer.contract.fact import Fact, call_method
from tonlake.api.explorer.words.body import unwrap
from tonlake.api.text.encoding import parse_address
from tonlake.api.v3.route import token
from tonlake.api.v3.route.account import AccountStatesQuery, get_account_states
from tonlake.ingest.derive.tvm.call import SUCCESS
from tonlake.ingest.derive.tvm.stack import TvmCell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.explorer.frame import Question
    from tonlake.api.text.encoding import Address

MAX_MEMBERS = 100

_NOTHING = "0 TON"
_UNKNOWN = [[Fact("Members", "unknown: the data of this contract has another form")]]


def describe_nominators(question: Question, address: Address) -> list[list[Fact]]:
    """Return the terms and members of a nominator pool, decoded from its data."""
    query = AccountStatesQuery(address=(address,), include_boc=True)
    states = get_account_states(question.call, query).accounts
    data = states[0].data_boc if states else None
    found = decode_pool(base64.b64decode(data)) if isinstance(data, str) else None
    if found is None:
        return _UNKNOWN
    pool = unwrap(found)
    members = pool["nominators"] or {}
    facts = [
        Fact("Validator", accounts=(f"-1:{pool['config']['validator_address']}",)),
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
    outcome = call_method(question, address, "get_members_raw")
    if isinstance(outcome, str):
        return [[Fact("Members", f"unknown: {outcome}")]]
    found = outcome.stack[-1] if outcome.exit_code in SUCCESS and outcome.stack else None
    if outcome.exit_code in SUCCESS and outcome.stack == (None,):
        return [[Fact("Members", "none")]]
    members = decode_members(found.boc) if isinstance(found, TvmCell) else None
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
    """Return the jetton of a liquid staking pool and its largest holders, who are the members.

    The pool is the admin of the jetton.
    """
    masters = token.get_masters(
        question.call, token.MastersQuery(admin_address=(address,), limit=1, offset=0)
    )
    question.names.learn(masters.address_book, masters.metadata)
    if not masters.jetton_masters:
        return [[Fact("Members", "unknown: the lake knows no jetton of this pool")]]
    master = masters.jetton_masters[0].address
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
    return [[Fact("Members hold the jetton", accounts=(master,)), *members]]
