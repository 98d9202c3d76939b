"""The peer's statements for lists, by name; parameters are named as in the HTTP API."""

from typing import Literal

import msgspec

LIMIT = 10
"""Rows of every page."""


class Statement(msgspec.Struct, frozen=True):
    """The statement of one list, and the peer's follow-up query."""

    sql: str
    then: Literal["", "messages", "traces"] = ""
    """``messages`` of the transactions; of ``traces``, their transactions and messages."""


_ROWS = "select * from {table} where {where} order by {order} limit {limit}"
PAGE_OF_MESSAGES = """
select page.*, body.body, state.body as init_state_body
from (
    select * from messages where {where} order by created_lt desc, msg_hash desc limit {limit}
) as page
left join message_contents as body on body.hash = body_hash
left join message_contents as state on state.hash = init_state_hash
order by created_lt desc, msg_hash desc
"""
"""The peer groups both ends of each message before it cuts the page; this is quicker."""

_BY_MESSAGE = """
select page.* from messages
join transactions as page on page.hash = tx_hash and page.lt = tx_lt
where {where} order by page.lt desc, page.account limit {limit}
"""
_BY_ACTION_ACCOUNT = """
select distinct on (found.trace_end_lt, found.trace_id, action_end_lt, found.action_id) a.*
from action_accounts as found
join actions as a on a.trace_id = found.trace_id and a.action_id = found.action_id
where account = %(account)s and a.end_lt is not null
order by found.trace_end_lt desc, found.trace_id desc, action_end_lt desc, found.action_id desc
limit {limit}
"""


def _transactions(where: str, order: str = "lt desc, account") -> Statement:
    return Statement(_list("transactions", where, order), "messages")


def _messages(where: str) -> Statement:
    return Statement(PAGE_OF_MESSAGES.format(where=where, limit=LIMIT))


def _by_message(where: str) -> Statement:
    return Statement(_BY_MESSAGE.format(where=where, limit=LIMIT), "messages")


def _traces(where: str, order: str = "end_lt desc, trace_id desc") -> Statement:
    return Statement(_list("traces", where, order), "traces")


def _rows(table: str, where: str, order: str) -> Statement:
    return Statement(_list(table, where, order))


def _list(table: str, where: str, order: str) -> str:
    return _ROWS.format(table=table, where=where, order=order, limit=LIMIT)


_SPAN = "now >= %(start_utime)s and now <= %(end_utime)s"
_CREATED = "created_at >= %(start_utime)s and created_at <= %(end_utime)s"
_ENDED = "end_utime >= %(start_utime)s and end_utime <= %(end_utime)s"
_TRANSFERRED = "tx_now >= %(start_utime)s and tx_now <= %(end_utime)s and tx_aborted is false"
_OF_ACCOUNT = """exists (
    select 1 from transactions
    where transactions.trace_id = traces.trace_id and account = %(account)s
)"""
_ACTIONS = "trace_end_lt desc, trace_id desc, end_lt desc, action_id desc"

STATEMENTS = {
    "transactions by hash": _transactions("hash = %(hash)s"),
    "transactions by account": _transactions("account = %(account)s", "account, lt desc"),
    "transactions by account and time": _transactions(
        f"account = %(account)s and {_SPAN}", "account, now desc, lt desc"
    ),
    "transactions by time": _transactions(_SPAN, "now desc, lt desc, account"),
    "transactions by lt": _transactions("lt >= %(start_lt)s and lt <= %(end_lt)s"),
    "transactions by masterchain block": _transactions("mc_block_seqno = %(mc_seqno)s"),
    "transactions by message": _by_message("msg_hash = %(msg_hash)s"),
    "transactions by opcode of a message": _by_message("opcode = %(opcode)s"),
    "adjacent transactions": Statement(
        """
        select * from transactions where hash in (
            select theirs.tx_hash from messages as ours
            join messages as theirs
            on theirs.msg_hash = ours.msg_hash and theirs.direction != ours.direction
            where ours.tx_hash = %(hash)s
        ) order by lt
        """,
        "messages",
    ),
    "messages by hash": _messages("msg_hash = %(msg_hash)s or msg_hash_norm = %(msg_hash)s"),
    "messages by body hash": _messages("body_hash = %(body_hash)s"),
    "messages by opcode": _messages("opcode = %(opcode)s"),
    "messages by source": _messages("source = %(source)s"),
    "messages by destination": _messages("destination = %(destination)s"),
    "messages by source and destination": _messages(
        "source = %(source)s and destination = %(destination)s"
    ),
    "messages by destination and opcode": _messages(
        "destination = %(destination)s and opcode = %(opcode)s"
    ),
    "messages by destination and time": _messages(f"destination = %(destination)s and {_CREATED}"),
    "messages by time": _messages(_CREATED),
    "blocks by number": _rows(
        "blocks", "workchain = %(workchain)s and seqno = %(seqno)s", "gen_utime desc"
    ),
    "blocks by root hash": _rows("blocks", "root_hash = %(root_hash)s", "gen_utime desc"),
    "blocks by time": _rows(
        "blocks",
        "gen_utime >= %(start_utime)s and gen_utime <= %(end_utime)s",
        "gen_utime desc",
    ),
    "traces by transaction": _traces(
        "trace_id in (select trace_id from transactions where hash = %(tx_hash)s)"
    ),
    "traces by account": _traces(_OF_ACCOUNT),
    "traces by time": _traces(_ENDED, "end_utime desc, trace_id desc"),
    "traces by masterchain block": _traces("state = 'complete' and mc_seqno_end = %(mc_seqno)s"),
    "accounts by balance": _rows("latest_account_states", "true", "balance desc"),
    "states of accounts": _rows("latest_account_states", "account = %(address)s", "account"),
    "actions by account": Statement(_BY_ACTION_ACCOUNT.format(limit=LIMIT)),
    "actions by id": _rows("actions", "action_id = %(action_id)s", _ACTIONS),
    "actions by time": _rows(
        "actions",
        "trace_end_utime >= %(start_utime)s and trace_end_utime <= %(end_utime)s",
        "trace_end_utime desc, trace_id desc, end_utime desc, action_id desc",
    ),
    "actions by trace": _rows("actions", "trace_id = %(trace_id)s", _ACTIONS),
    "jetton transfers by owner": _rows(
        "jetton_transfers",
        "(source = %(owner_address)s or destination = %(owner_address)s) and tx_aborted is false",
        "tx_lt desc",
    ),
    "jetton transfers by jetton": _rows(
        "jetton_transfers",
        "jetton_master_address = %(jetton_master)s and tx_aborted is false",
        "tx_lt desc",
    ),
    "jetton transfers by time": _rows("jetton_transfers", _TRANSFERRED, "tx_now desc, tx_lt desc"),
    "jetton wallets by owner": _rows("jetton_wallets", "owner = %(owner_address)s", "owner, id"),
    "NFT transfers by time": _rows("nft_transfers", _TRANSFERRED, "tx_now desc, tx_lt desc"),
    "NFT items by owner": _rows(
        "nft_items",
        "owner_address = %(owner_address)s",
        "owner_address, collection_address, index",
    ),
    "NFT items by collection": _rows(
        "nft_items", "collection_address = %(collection_address)s", "collection_address, index"
    ),
    "DNS records by wallet": _rows("dns_entries", "dns_wallet = %(wallet)s", "length(domain)"),
    "multisig wallet by address": _rows("multisig", "address = %(address)s", "id"),
}
