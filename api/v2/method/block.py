"""Blocks: identities, headers, shards and the transactions in them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tonlake.api.chain.account import ZERO_HASH
from tonlake.api.chain.place import (
    BLOCK_UNKNOWN,
    find_block,
    find_block_at_lt,
    find_block_at_utime,
    find_master,
)
from tonlake.api.errors import LiteServerError
from tonlake.api.v2.method.transaction import render_in_block
from tonlake.api.v2.value import render_base64, render_block_id, render_block_of
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import (
        BlockPageParams,
        BlockParams,
        LookupParams,
        MasterParams,
        NoParams,
    )

    Row = Mapping[str, Any]

DEFAULT_COUNT = 40
"""Default count of transactions of a block."""

SHORT_ID_MODE = 135
"""Request mode bits that the public service always sets: account, lt, hash, and its own 128."""


def answer_masterchain_info(call: Call, params: NoParams) -> dict[str, Any]:
    """getMasterchainInfo: the newest masterchain block and the zero state."""
    del params
    last = find_master(call)
    network = call.reader.snapshot.network
    root_hash = network.zero_state_root_hash if network else None
    file_hash = network.zero_state_file_hash if network else None
    return {
        "@type": "blocks.masterchainInfo",
        "last": render_block_of(last),
        "state_root_hash": render_base64(last["state_root_hash"]),
        # A lake without the zero state and block 1 cannot know these two hashes.
        "init": render_block_id(
            MASTERCHAIN,
            0,
            0,
            bytes.fromhex(root_hash) if root_hash else ZERO_HASH,
            bytes.fromhex(file_hash) if file_hash else ZERO_HASH,
        ),
    }


def answer_consensus_block(call: Call, params: NoParams) -> dict[str, Any]:
    """getConsensusBlock: newest masterchain seqno and current time."""
    del params
    return {
        "@type": "ext.blocks.consensusBlock",
        "consensus_block": call.reader.snapshot.last_mc_seqno,
        "timestamp": int(time.time()),
    }


def answer_lookup(call: Call, params: LookupParams) -> dict[str, Any]:
    """lookupBlock: block by seqno, or the first at or after a logical or Unix time."""
    where = (call, params.workchain, params.shard)
    if params.seqno is not None:
        return render_block_of(find_block(*where, params.seqno))
    if params.lt is not None:
        return render_block_of(find_block_at_lt(*where, params.lt))
    return render_block_of(find_block_at_utime(*where, params.unixtime or 0))


def answer_shards(call: Call, params: MasterParams) -> dict[str, Any]:
    """shards, getShards: newest block of every shard, by prefix."""
    master = find_master(call, params.seqno)
    rows = call.reader.rows("v2/shards", mc_seqno=master["seqno"])
    return {"@type": "blocks.shards", "shards": [render_block_of(row) for row in rows]}


def answer_header(call: Call, params: BlockParams) -> dict[str, Any]:
    """getBlockHeader: the header of one block."""
    row = _find_identified(call, params)
    return {
        "@type": "blocks.header",
        "id": render_block_of(row),
        "global_id": row["global_id"],
        "version": row["version"],
        "flags": row["flags"],
        "after_merge": row["after_merge"],
        "after_split": row["after_split"],
        "before_split": row["before_split"],
        "want_merge": row["want_merge"],
        "want_split": row["want_split"],
        "validator_list_hash_short": row["validator_list_hash_short"],
        "catchain_seqno": row["gen_catchain_seqno"],
        "min_ref_mc_seqno": row["min_ref_mc_seqno"],
        "is_key_block": row["key_block"],
        "prev_key_block_seqno": row["prev_key_block_seqno"] if _is_master(row) else 0,
        "start_lt": str(row["start_lt"]),
        "end_lt": str(row["end_lt"]),
        "gen_utime": row["gen_utime"],
        "vert_seqno": row["vert_seqno"],
        "prev_blocks": [_render_previous(row, name) for name in _previous_names(row)],
    }


def answer_block_transactions(call: Call, params: BlockPageParams) -> dict[str, Any]:
    """getBlockTransactions: transaction ids by account and logical time, paged."""
    found, rows = _read_block_page(call, params)
    return {
        "@type": "blocks.transactions",
        **found,
        "transactions": [
            {
                "@type": "blocks.shortTxId",
                "mode": SHORT_ID_MODE,
                "account": f"{row['workchain']}:{row['account'].hex()}",
                "lt": str(row["lt"]),
                "hash": render_base64(row["hash"]),
            }
            for row in rows
        ],
    }


def answer_block_transactions_ext(call: Call, params: BlockPageParams) -> dict[str, Any]:
    """getBlockTransactionsExt: transactions of a block, paged."""
    found, rows = _read_block_page(call, params)
    transactions = render_in_block(call, rows)
    return {"@type": "blocks.transactionsExt", **found, "transactions": transactions}


def _read_block_page(
    call: Call, params: BlockPageParams
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the fields common to both responses, and the rows of the page."""
    block = _find_identified(call, params)
    count = DEFAULT_COUNT if params.count is None else params.count
    rows = call.reader.rows(
        "v2/block_transactions",
        **{name: block[name] for name in ("workchain", "shard", "seqno", "mc_seqno")},
        after_account=params.after_hash,
        after_lt=params.after_lt or 0,
        rows=count + 1,
    )
    found = {
        "id": render_block_of(block),
        "req_count": count,
        "incomplete": len(rows) > count,
    }
    return found, rows[:count]


def _find_identified(call: Call, params: BlockParams) -> Row:
    """Return the block; hashes are compared only if both are set."""
    row = find_block(call, params.workchain, params.shard, params.seqno)
    if params.root_hash is None or params.file_hash is None:
        return row
    if (row["root_hash"], row["file_hash"]) != (params.root_hash, params.file_hash):
        raise LiteServerError(BLOCK_UNKNOWN)
    return row


def _is_master(row: Row) -> bool:
    return bool(row["workchain"] == MASTERCHAIN)


def _previous_names(row: Row) -> tuple[str, ...]:
    return tuple(name for name in ("prev", "prev2") if row[f"{name}_seqno"] is not None)


def _render_previous(row: Row, name: str) -> dict[str, Any]:
    columns = ("shard", "seqno", "root_hash", "file_hash")
    return render_block_id(row["workchain"], *(row[f"{name}_{column}"] for column in columns))
