"""Blocks, messages and transactions of version 3, with phases and account states."""

from typing import Annotated

import msgspec
from msgspec import UNSET

from tonlake.api.v3.layout.field import (
    Bag,
    Base64,
    Column,
    Currencies,
    Decimal,
    Kind,
    Omitted,
    RawAddress,
    Shard,
    account,
    inner,
)


class BlockId(msgspec.Struct, gc=False):
    """A block id; ``shard`` is hex."""

    workchain: int
    shard: Shard | None
    seqno: int


class Block(msgspec.Struct, gc=False):
    """A block's header; lt and time are decimal text."""

    # Its sources: the row, the id of its masterchain block, and the ids of the previous blocks.

    workchain: int
    shard: Shard
    seqno: int
    root_hash: Base64
    file_hash: Base64
    global_id: int
    version: int
    after_merge: bool
    before_split: bool
    after_split: bool
    want_merge: bool
    want_split: bool
    key_block: bool
    vert_seqno_incr: bool
    flags: int
    gen_utime: Decimal
    start_lt: Decimal
    end_lt: Decimal
    validator_list_hash_short: int
    gen_catchain_seqno: int
    min_ref_mc_seqno: int
    prev_key_block_seqno: int
    vert_seqno: int
    master_ref_seqno: int
    rand_seed: Base64
    created_by: Base64
    tx_count: int
    masterchain_block_ref: Annotated[BlockId, inner(source=1)]
    prev_blocks: Annotated[list[BlockId], Kind.LIST, inner(source=2)]


INTERNAL, EXTERNAL = "int", "ext_in"
"""Kinds of messages: only internal ones have extra currencies, and bodies of external ones may be
decoded although their opcode is unknown.
"""


class MessageContent(msgspec.Struct, gc=False):
    """The body or initial state of a message as a bag of cells."""

    hash: Base64 | None
    body: Bag | None
    decoded: dict[str, object] | None = None


class Message(msgspec.Struct, gc=False):
    """A message; amounts, lt and time are decimal text."""

    # in_tx_hash and out_tx_hash, the transactions at both ends, may be missing from the row.

    hash: Annotated[Base64, Column("msg_hash")]
    source: Annotated[RawAddress, account("source")] | None
    destination: Annotated[RawAddress, account("destination")] | None
    value: Decimal | None
    value_extra_currencies: (
        Annotated[Currencies, Kind.CURRENCIES, Column("value_extra_currencies", "kind", INTERNAL)]
        | None
    )
    fwd_fee: Decimal | None
    ihr_fee: Decimal | None
    extra_flags: Decimal | None
    created_lt: Decimal | None
    created_at: Decimal | None
    opcode: Annotated[str | int | None, Kind.OPCODE]
    decoded_opcode: Annotated[str, Kind.OPCODE_NAME, Column("body", "kind", EXTERNAL)] | None
    ihr_disabled: bool | None
    bounce: bool | None
    bounced: bool | None
    import_fee: Decimal | None
    message_content: (
        Annotated[MessageContent, Kind.BODY, inner(hash="body_hash", body="body")] | None
    )
    init_state: (
        Annotated[
            MessageContent, inner("init_state_hash", hash="init_state_hash", body="init_state")
        ]
        | None
    )
    in_msg_tx_hash: Annotated[Base64, Column("in_tx_hash")] | Omitted = UNSET
    out_msg_tx_hash: Annotated[Base64, Column("out_tx_hash")] | Omitted = UNSET
    hash_norm: Annotated[str, Kind.BASE64_UNLESS, Column("hash_norm", "msg_hash")] | Omitted = UNSET


class StoragePhase(msgspec.Struct, gc=False):
    """Storage phase: storage fees."""

    storage_fees_collected: Decimal | Omitted = UNSET
    storage_fees_due: Decimal | Omitted = UNSET
    status_change: Annotated[str, Column("storage_status_change")] | Omitted = UNSET


class CreditPhase(msgspec.Struct, gc=False):
    """Credit phase: value credited."""

    due_fees_collected: Annotated[Decimal, Column("credit_due_fees_collected")] | Omitted = UNSET
    credit: Decimal | Omitted = UNSET
    credit_extra_currencies: Currencies | Omitted = UNSET


class ComputePhase(msgspec.Struct, gc=False):
    """Compute phase: TVM execution, or why it was skipped."""

    skipped: bool | Omitted = UNSET
    reason: Annotated[str, Column("compute_skip_reason")] | Omitted = UNSET
    success: bool | Omitted = UNSET
    msg_state_used: bool | Omitted = UNSET
    account_activated: bool | Omitted = UNSET
    gas_fees: Decimal | Omitted = UNSET
    gas_used: Decimal | Omitted = UNSET
    gas_limit: Decimal | Omitted = UNSET
    gas_credit: Decimal | Omitted = UNSET
    mode: int | Omitted = UNSET
    exit_code: int | Omitted = UNSET
    exit_arg: int | Omitted = UNSET
    vm_steps: int | Omitted = UNSET
    vm_init_state_hash: Base64 | Omitted = UNSET
    vm_final_state_hash: Base64 | Omitted = UNSET


class MessageSize(msgspec.Struct, gc=False):
    """Size of messages in cells and bits, as decimal text."""

    cells: Decimal | None
    bits: Decimal | None


class ActionPhase(msgspec.Struct, gc=False):
    """Action phase: results of the action list."""

    success: bool | Omitted = UNSET
    valid: bool | Omitted = UNSET
    no_funds: bool | Omitted = UNSET
    status_change: str | Omitted = UNSET
    total_fwd_fees: Decimal | Omitted = UNSET
    total_action_fees: Decimal | Omitted = UNSET
    result_code: int | Omitted = UNSET
    result_arg: int | Omitted = UNSET
    tot_actions: int | Omitted = UNSET
    spec_actions: int | Omitted = UNSET
    skipped_actions: int | Omitted = UNSET
    msgs_created: int | Omitted = UNSET
    action_list_hash: Annotated[Base64, Column("action_list_hash")] | Omitted = UNSET
    tot_msg_size: (
        Annotated[MessageSize, inner("action_tot_msg_size_cells", prefix="action_tot_msg_size_")]
        | Omitted
    ) = UNSET


class BouncePhase(msgspec.Struct, gc=False):
    """Bounce phase."""

    type: Annotated[str, Column("bounce")] | None = None
    msg_size: (
        Annotated[MessageSize, inner("bounce_msg_size_cells", prefix="bounce_msg_size_")] | Omitted
    ) = UNSET
    req_fwd_fees: Decimal | Omitted = UNSET
    msg_fees: Decimal | Omitted = UNSET
    fwd_fees: Decimal | Omitted = UNSET


class SplitInfo(msgspec.Struct, gc=False):
    """Accounts of a split or merge transaction."""

    cur_shard_pfx_len: int | Omitted = UNSET
    acc_split_depth: int | Omitted = UNSET
    this_addr: (
        Annotated[RawAddress, Column("workchain", "split_info_this_addr")] | Omitted | None
    ) = UNSET
    sibling_addr: (
        Annotated[RawAddress, Column("workchain", "split_info_sibling_addr")] | Omitted | None
    ) = UNSET


class TransactionDescr(msgspec.Struct, gc=False):
    """Transaction type and phases."""

    type: Annotated[str, Column("descr")]
    aborted: bool | Omitted = UNSET
    destroyed: bool | Omitted = UNSET
    credit_first: bool | Omitted = UNSET
    is_tock: bool | Omitted = UNSET
    installed: bool | Omitted = UNSET
    storage_ph: Annotated[StoragePhase, inner("storage_status_change")] | Omitted = UNSET
    credit_ph: (
        Annotated[
            CreditPhase, inner("credit", "credit_due_fees_collected", "credit_extra_currencies")
        ]
        | Omitted
    ) = UNSET
    compute_ph: Annotated[ComputePhase, inner("compute_skipped", prefix="compute_")] | Omitted = (
        UNSET
    )
    action: Annotated[ActionPhase, inner("action_success", prefix="action_")] | Omitted = UNSET
    bounce: Annotated[BouncePhase, inner("bounce", prefix="bounce_")] | Omitted = UNSET
    split_info: (
        Annotated[SplitInfo, inner("split_info_cur_shard_pfx_len", prefix="split_info_")] | Omitted
    ) = UNSET


class AccountState(msgspec.Struct, gc=False):
    """An account before or after a transaction; only ``hash`` if the state is unknown."""

    hash: Base64
    balance: Decimal | None = None
    extra_currencies: Currencies | None = None
    account_status: str | None = None
    frozen_hash: Base64 | None = None
    data_hash: Base64 | None = None
    code_hash: Base64 | None = None


class Transaction(msgspec.Struct, gc=False):
    """A transaction with its messages and the account's states before and after it."""

    # Its sources: the row, the in message, the out messages, the states before and after.

    account: Annotated[str, Kind.NAMED_ACCOUNT, account()]
    hash: Base64
    lt: Decimal
    now: int
    mc_block_seqno: Annotated[int, Column("mc_seqno")] | None
    prev_trans_hash: Base64
    prev_trans_lt: Decimal
    orig_status: str
    end_status: str
    total_fees: Decimal
    total_fees_extra_currencies: Currencies
    description: TransactionDescr
    block_ref: Annotated[BlockId, inner("block_seqno", seqno="block_seqno")] | None
    in_msg: Annotated[Message, inner(source=1, named="source")] | None
    out_msgs: Annotated[list[Message], Kind.LIST, inner(source=2, named="destination")]
    account_state_before: (
        Annotated[AccountState, inner(source=3, hash="account_state_hash_before")] | None
    )
    account_state_after: (
        Annotated[AccountState, inner(source=4, hash="account_state_hash_after")] | None
    )
    trace_id: Base64 | Omitted = UNSET
    emulated: bool = False
    finality: str = "finalized"
