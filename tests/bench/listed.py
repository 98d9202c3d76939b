"""The benchmarked lists, and parameters for them drawn from a lake."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import duckdb
import msgspec

from tests.bench.peer.lists import LIMIT

API = "/api/v3/"
UNIT = "transactions by hash"
"""The question whose CPU is the unit that the others are held to."""

PLAIN, ASSEMBLED = 3.0, 5.0
"""Units for a page of 10 rows, and for one of 10 traces or actions."""

UNPAGED = ("accountStates", "adjacentTransactions")

Parameters = dict[str, Any]

OF_MESSAGES = "select distinct {name} from messages order by {name} limit $1"
BUSY = """
select peer_address(workchain, account) as {name} from transactions
group by workchain, account having count(*) between 10 and 1000 order by account limit $1
"""
END = """
select peer_address({name}_workchain, {name}) as {name} from messages where {name} is not null
group by {name}_workchain, {name} having count(*) between 10 and 1000 order by {name} limit $1
"""
BOTH = """
select
    peer_address(source_workchain, source) as source,
    peer_address(destination_workchain, destination) as destination
from messages where source is not null and destination is not null order by msg_hash limit $1
"""
WITH_OPCODE = """
select peer_address(destination_workchain, destination) as destination, opcode
from messages where destination is not null and opcode is not null order by msg_hash limit $1
"""
WITH_TIME = """
select
    peer_address(destination_workchain, destination) as destination,
    created_at - 300 as start_utime,
    created_at + 299 as end_utime
from messages where destination is not null and created_at is not null order by msg_hash limit $1
"""
OF_ACCOUNT_AND_TIME = """
select
    peer_address(workchain, account) as account, now - 300 as start_utime, now + 299 as end_utime
from transactions order by hash limit $1
"""
SPAN = """
select now - 300 as start_utime, now + 299 as end_utime
from transactions order by hash limit $1
"""
LT_SPAN = """
select lt - 10000000 as start_lt, lt + 10000000 as end_lt
from transactions order by hash limit $1
"""
OPCODES = """
select opcode from messages where opcode is not null
group by opcode order by count(*) desc, opcode limit least($1, 50)
"""
BLOCKS = "from blocks order by root_hash limit $1"
MASTERCHAIN = "select distinct mc_seqno from transactions order by hash(mc_seqno) limit $1"
OWNERS = """
select peer_address({end}_workchain, {end}) as {name} from {table} where {end} is not null
group by {end}_workchain, {end} order by count(*) desc, {end} limit $1
"""
ACTIONS = "from actions order by action_id limit $1"


def _by_owner(path: str, table: str, end: str, name: str) -> tuple[str, str]:
    return path, OWNERS.format(table=table, end=end, name=name)


IN_ACTIONS = """
select peer_address(workchain, account) as account from action_accounts
group by workchain, account order by count(*) desc, account limit $1
"""
MOVED = """
select now - 300 as start_utime, now + 299 as end_utime from {table} order by tx_hash limit $1
"""

CHAIN = {
    "transactions by hash": (
        "transactions",
        "select hash from transactions order by hash limit $1",
    ),
    "transactions by account": ("transactions", BUSY.format(name="account")),
    "transactions by account and time": ("transactions", OF_ACCOUNT_AND_TIME),
    "transactions by time": ("transactions", SPAN),
    "transactions by lt": ("transactions", LT_SPAN),
    "transactions by masterchain block": ("transactions", MASTERCHAIN),
    "transactions by message": ("transactionsByMessage", OF_MESSAGES.format(name="msg_hash")),
    "transactions by opcode of a message": ("transactionsByMessage", OPCODES),
    "adjacent transactions": (
        "adjacentTransactions",
        """
        select distinct ours.tx_hash as hash from messages as ours
        join messages as theirs using (msg_hash)
        where ours.direction != theirs.direction order by hash limit $1
        """,
    ),
    "messages by hash": ("messages", OF_MESSAGES.format(name="msg_hash")),
    "messages by body hash": ("messages", OF_MESSAGES.format(name="body_hash")),
    "messages by opcode": ("messages", OPCODES),
    "messages by source": ("messages", END.format(name="source")),
    "messages by destination": ("messages", END.format(name="destination")),
    "messages by source and destination": ("messages", BOTH),
    "messages by destination and opcode": ("messages", WITH_OPCODE),
    "messages by destination and time": ("messages", WITH_TIME),
    "messages by time": ("messages", SPAN),
    "blocks by number": ("blocks", f"select workchain, seqno {BLOCKS}"),
    "blocks by root hash": ("blocks", f"select root_hash {BLOCKS}"),
    "blocks by time": ("blocks", SPAN),
    "accounts by balance": ("topAccountsByBalance", "select range as offset from range($1)"),
    "states of accounts": ("accountStates", BUSY.format(name="address")),
    "traces by transaction": (
        "traces",
        "select hash as tx_hash from transactions order by hash limit $1",
    ),
    "traces by account": ("traces", BUSY.format(name="account")),
    "traces by time": ("traces", SPAN),
    "traces by masterchain block": ("traces", MASTERCHAIN),
}
"""Path, and the statement that draws its parameters, by the name of the peer's statement."""

DERIVED = {
    "actions by account": ("actions", IN_ACTIONS),
    "actions by id": ("actions", f"select action_id {ACTIONS}"),
    "actions by time": ("actions", SPAN),
    "actions by trace": ("actions", f"select trace_id {ACTIONS}"),
    "jetton transfers by owner": _by_owner(
        "jetton/transfers", "jetton_transfers", "destination", "owner_address"
    ),
    "jetton transfers by jetton": _by_owner(
        "jetton/transfers", "jetton_transfers", "jetton", "jetton_master"
    ),
    "jetton transfers by time": ("jetton/transfers", MOVED.format(table="jetton_transfers")),
    "jetton wallets by owner": _by_owner(
        "jetton/wallets", "jetton_wallets", "owner", "owner_address"
    ),
    "NFT transfers by time": ("nft/transfers", MOVED.format(table="nft_transfers")),
    "NFT items by owner": _by_owner("nft/items", "nft_items", "owner", "owner_address"),
    "NFT items by collection": _by_owner(
        "nft/items", "nft_items", "collection", "collection_address"
    ),
    "DNS records by wallet": _by_owner("dns/records", "dns_records", "wallet", "wallet"),
    "multisig wallet by address": (
        "multisig/wallets",
        """
        select distinct peer_address(workchain, account) as address
        from multisig_wallets order by all limit $1
        """,
    ),
}
"""Likewise of what a lake of a node holds besides."""


class ListQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One list: its path and parameters; the peer's statement has the same name."""

    name: str
    path: str
    parameters: Sequence[Parameters]
    units: float = PLAIN

    def url(self, parameters: Parameters) -> str:
        """Return path and query for one set of parameters."""
        texts = {
            name: b64encode(value, b"-_").decode() if isinstance(value, bytes) else str(value)
            for name, value in parameters.items()
        }
        limit = {} if self.path in UNPAGED else {"limit": LIMIT}
        return f"{API}{self.path}?{urlencode(texts | limit)}"


def draw_lists(
    rows: duckdb.DuckDBPyConnection, lists: Mapping[str, tuple[str, str]], count: int
) -> list[ListQuestion]:
    """Return the lists with at most ``count`` parameters each, a fair sample: hashes are random."""
    drawn = []
    for name, (path, sql) in lists.items():
        found = rows.execute(sql, [count])
        columns = [column for column, *_ in found.description]
        drawn.append(
            ListQuestion(
                name=name,
                path=path,
                parameters=[dict(zip(columns, row, strict=True)) for row in found.fetchall()],
                units=ASSEMBLED if path in {"traces", "actions"} else PLAIN,
            )
        )
    return drawn
