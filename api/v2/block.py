"""Blocks and the network: headers, shards, signatures, proofs; configuration, sending, fees."""

import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import msgspec

from tonlake.api.chain.account import ZERO_HASH
from tonlake.api.chain.arguments import (
    BagParams,
    BlockPageParams,
    BlockParams,
    CellParams,
    ConfigParamParams,
    ConfigParams,
    EstimateParams,
    LibraryParams,
    LookupParams,
    MasterParams,
    Params,
    ProofParams,
)
from tonlake.api.chain.block import (
    BLOCK_UNKNOWN,
    Row,
    find_block,
    find_block_at,
    find_block_row,
    find_master,
)
from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.run import estimate_fees, read_params
from tonlake.api.chain.upstream import (
    PARTS,
    ask_upstream,
    build_message,
    keep_pending,
    send_bag,
    sends_by_liteserver,
)
from tonlake.api.errors import LiteServerError
from tonlake.api.request.call import Call
from tonlake.api.v2.transaction import render_in_block
from tonlake.api.v2.value import render_base64, render_block_id, render_block_of, render_boc
from tonlake.ingest.decode.block.proof import prove_header, prove_shards, read_signatures
from tonlake.ingest.derive.tvm.call import join_params
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.account import MASTERCHAIN, shards_overlap

DEFAULT_COUNT = 40

SHORT_ID_MODE = 135
"""Request mode bits that the public service always sets: account, lt, hash, and its own 128."""


def answer_masterchain_info(call: Call, _params: Params) -> dict[str, Any]:
    """getMasterchainInfo: the newest masterchain block and the zero state."""
    last = find_master(call)
    network = call.reader.snapshot.state.network
    hashes = network and (network.zero_state_root_hash, network.zero_state_file_hash)
    return {
        "@type": "blocks.masterchainInfo",
        "last": render_block_of(last),
        "state_root_hash": render_base64(last["state_root_hash"]),
        # A lake without the zero state and block 1 cannot know these two hashes.
        "init": render_block_id(
            MASTERCHAIN,
            0,
            0,
            *(bytes.fromhex(text) if text else ZERO_HASH for text in hashes or (None, None)),
        ),
    }


def answer_consensus_block(call: Call, _params: Params) -> dict[str, Any]:
    """getConsensusBlock: newest masterchain seqno and current time."""
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
    return render_block_of(find_block_at(*where, lt=params.lt, utime=params.unixtime))


def answer_shards(call: Call, params: MasterParams) -> dict[str, Any]:
    """shards, getShards: newest block of every shard, by prefix."""
    master = find_master(call, params.seqno)
    rows = call.reader.rows("v2/shards", mc_seqno=master["seqno"])
    return {"@type": "blocks.shards", "shards": [render_block_of(row) for row in rows]}


def answer_header(call: Call, params: BlockParams) -> dict[str, Any]:
    """getBlockHeader: the header of one block."""
    row = _find_identified(call, params)
    is_master = row["workchain"] == MASTERCHAIN
    return {
        "@type": "blocks.header",
        "id": render_block_of(row),
        **{name: row[name] for name in _HEADER_COLUMNS},
        "catchain_seqno": row["gen_catchain_seqno"],
        "min_ref_mc_seqno": row["min_ref_mc_seqno"],
        "is_key_block": row["key_block"],
        "prev_key_block_seqno": row["prev_key_block_seqno"] if is_master else 0,
        "start_lt": str(row["start_lt"]),
        "end_lt": str(row["end_lt"]),
        "gen_utime": row["gen_utime"],
        "vert_seqno": row["vert_seqno"],
        "prev_blocks": [
            render_block_id(row["workchain"], *(row[f"{name}_{column}"] for column in _ID_COLUMNS))
            for name in ("prev", "prev2")
            if row[f"{name}_seqno"] is not None
        ],
    }


_ID_COLUMNS = ("shard", "seqno", "root_hash", "file_hash")
_HEADER_COLUMNS = (
    *("global_id", "version", "flags", "after_merge", "after_split", "before_split"),
    *("want_merge", "want_split", "validator_list_hash_short"),
)
"""Columns of a block that have the same names in its header."""


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
    found = {"id": render_block_of(block), "req_count": count, "incomplete": len(rows) > count}
    return found, rows[:count]


def _find_identified(call: Call, params: BlockParams) -> Row:
    """Return the block; hashes are compared only if both are set."""
    row = find_block(call, params.workchain, params.shard, params.seqno)
    if params.root_hash is None or params.file_hash is None:
        return row
    if (row["root_hash"], row["file_hash"]) != (params.root_hash, params.file_hash):
        raise LiteServerError(BLOCK_UNKNOWN)
    return row


_name_block = itemgetter("workchain", "shard", "seqno")
PROOF_UNKNOWN = "LITE_SERVER_NOTREADY: block proof not in db"
MAX_LINKS = 64
"""Upper bound of blocks of one shard that a masterchain block commits."""


def answer_signatures(call: Call, params: MasterParams) -> dict[str, Any]:
    """getMasterchainBlockSignatures: Ed25519 signatures with short key ids.

    Those of Simplex consensus come with what was signed (tonlib: blocks.blockSignatures.simplex).
    """
    master = find_master(call, params.seqno)
    try:
        signed = read_signatures(_read_proof(call, master)["proof"])
    except (DecodeError, BocError) as error:
        raise LiteServerError(f"LITE_SERVER_ERROR: {error}") from error
    answer = {
        "@type": "blocks.blockSignatures",
        "id": render_block_of(master),
        "signatures": [
            {
                "@type": "blocks.signature",
                "node_id_short": render_base64(one.node_id_short),
                "signature": render_base64(one.signature),
            }
            for one in signed.signatures
        ],
    }
    if signed.vote is None:
        return answer
    return answer | {
        "@type": "blocks.blockSignatures.simplex",
        "session_id": render_base64(signed.vote.session_id),
        "slot": signed.vote.slot,
        "candidate": render_base64(signed.vote.candidate),
    }


def answer_shard_proof(call: Call, params: ProofParams) -> dict[str, Any]:
    """getShardBlockProof: proof of a shard block from the masterchain block that commits it."""
    block = find_block(call, params.workchain, params.shard, params.seqno)
    master = find_master(call, block["mc_seqno"])
    if params.from_seqno not in (None, 0, master["seqno"]):
        raise LiteServerError(
            f"{PROOF_UNKNOWN}: the block is committed by masterchain block {master['seqno']}, and "
            f"proofs between that one and {params.from_seqno} are not kept; ask from_seqno "
            f"{master['seqno']}"
        )
    try:
        links = _link(call, master, block)
    except (DecodeError, BocError) as error:
        raise LiteServerError(f"LITE_SERVER_ERROR: {error}") from error
    return {
        "@type": "blocks.shardBlockProof",
        "from": render_block_of(master),
        "mc_id": render_block_of(master),
        "links": links,
        "mc_proof": [],
    }


def _link(call: Call, master: Row, block: Row) -> list[dict[str, Any]]:
    """Return the proof links from a masterchain block to a block that it commits."""
    if block["workchain"] == MASTERCHAIN:
        return []
    current = _find_top(call, master, block)
    row = _read_proof(call, master)
    if row["mc_extra"] is None:
        raise LiteServerError(f"{PROOF_UNKNOWN}: the lake has no shard tops of {master['seqno']}")
    links = [_render_link(current, prove_shards(row["proof"], row["mc_extra"]))]
    while _name_block(current) != _name_block(block):
        if len(links) > MAX_LINKS:
            raise LiteServerError("LITE_SERVER_ERROR: proof chain is too long")
        proof = prove_header(_read_proof(call, current)["proof"])
        # After a merge, the previous block is the one that overlaps the shard.
        overlaps = shards_overlap(current["prev_shard"], block["shard"])
        name = "prev" if current["prev2_shard"] is None or overlaps else "prev2"
        place = current["workchain"], current[f"{name}_shard"], current[f"{name}_seqno"]
        current = _read_block(call, *place)
        links.append(_render_link(current, proof))
    return links


def _find_top(call: Call, master: Row, block: Row) -> Row:
    """Return the shard top of a masterchain block that descends from a block."""
    for top in call.reader.rows("v2/shards", mc_seqno=master["seqno"]):
        if top["workchain"] == block["workchain"] and shards_overlap(top["shard"], block["shard"]):
            return _read_block(call, top["workchain"], top["shard"], top["seqno"])
    raise LiteServerError(BLOCK_UNKNOWN)


def _read_block(call: Call, workchain: int, shard: int, seqno: int) -> Row:
    row = find_block_row(call.reader, workchain, [shard], seqno)
    if row is None:
        raise LiteServerError(BLOCK_UNKNOWN)
    return row


def _read_proof(call: Call, block: Row) -> Row:
    """Return the proof of a block as stored in the lake."""
    columns = ("workchain", "shard", "seqno", "mc_seqno")
    row = call.reader.one("v2/block_proof", **{name: block[name] for name in columns})
    if row is None:
        raise LiteServerError(f"{PROOF_UNKNOWN}: the lake has this block without its proof")
    return row


def _render_link(block: Row, proof: bytes) -> dict[str, Any]:
    return {
        "@type": "blocks.shardBlockLink",
        "id": render_block_of(block),
        "proof": render_boc(proof),
    }


def answer_config_param(call: Call, params: ConfigParamParams) -> dict[str, Any]:
    """getConfigParam: the cell of one parameter."""
    found = read_params(call, find_master(call, params.seqno))
    if params.number not in found:
        raise LiteServerError(
            f"LITE_SERVER_UNKNOWN: configuration parameter {params.number} is not set"
        )
    return _render(found[params.number])


def answer_config_all(call: Call, params: ConfigParams) -> dict[str, Any]:
    """getConfigAll: the root of the dictionary of all parameters (Hashmap 32 ^Cell)."""
    return _render(join_params(read_params(call, find_master(call, params.seqno))))


def _render(boc: bytes) -> dict[str, Any]:
    return {"@type": "configInfo", "config": {"@type": "tvm.cell", "bytes": render_boc(boc)}}


def answer_libraries(call: Call, params: LibraryParams) -> dict[str, Any]:
    """getLibraries: public libraries by hash; unknown ones are omitted."""
    rows = call.reader.rows(
        "v2/libraries", hashes=list(params.libraries), mc_seqno=call.reader.snapshot.last_mc_seqno
    )
    cells = read_cell_trees(call.reader, [row["hash"] for row in rows])
    return {
        "@type": "smc.libraryResult",
        "result": [
            {
                "@type": "smc.libraryEntry",
                "hash": render_base64(library),
                "data": render_boc(cells[library]),
            }
            for library in dict.fromkeys(params.libraries)
            if library in cells
        ],
    }


EXT_MSG_QUEUE_SIZE_LIMIT = 8000
"""Limit of queued external messages in a shard (``ValidatorManagerImpl``)."""


def answer_queue_sizes(call: Call, _params: Params) -> dict[str, Any]:
    """getOutMsgQueueSizes: current outbound queue size of the masterchain and every shard."""
    master = find_master(call)
    rows = call.reader.rows("v2/queue_sizes", mc_seqno=master["seqno"])
    for row in rows:
        if row["out_queue_size"] is None:
            raise LiteServerError(
                f"LITE_SERVER_ERROR: the size of the queue after block ({row['workchain']},"
                f"{row['shard'] & (1 << 64) - 1:016x},{row['seqno']}) is not known: the lake was "
                "made before sizes were kept, or the state has none"
            )
    return {
        "@type": "blocks.outMsgQueueSizes",
        "shards": [
            {
                "@type": "blocks.outMsgQueueSize",
                "id": render_block_of(row),
                "size": row["out_queue_size"],
            }
            for row in rows
        ],
        "ext_msg_queue_size_limit": EXT_MSG_QUEUE_SIZE_LIMIT,
    }


def answer_with(method: str) -> Callable[[Call, BagParams], Any]:
    """Return the handler of sendBoc or a variant of it; they differ only in the response."""
    return lambda call, params: send_bag(call, params.boc, method)


def answer_send_cell(call: Call, params: CellParams) -> Any:  # noqa: ANN401 - as it came
    """sendCellSimple: sendBoc of a cell in JSON."""
    return send_bag(call, params.cell)


def answer_send_query(call: Call, params: EstimateParams) -> Any:  # noqa: ANN401 - as it came
    """sendQuery, sendQuerySimple: send a message in parts."""
    message = build_message(params)
    written = {name: render_base64(getattr(params, name)) for name in PARTS}
    if message is not None and sends_by_liteserver(call.settings.upstream):
        return send_bag(call, message)
    written["address"] = str(params.address.address)
    answer = ask_upstream(call.settings.upstream, "sendQuery", written)
    if message is not None:
        keep_pending(call, message)
    return answer


def answer_estimate(call: Call, params: EstimateParams) -> dict[str, Any]:
    """estimateFee: fees of a message for its account, without later messages."""
    fees = estimate_fees(call, params)
    return {
        "@type": "query.fees",
        "source_fees": {"@type": "fees", **msgspec.structs.asdict(fees)},
        "destination_fees": [],
    }
