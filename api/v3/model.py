"""The resources of version 3 that belong to the chain itself, field by field.

A field whose default is ``UNSET`` is left out of the JSON; one that may be None is written null.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

Omitted = UnsetType
Currencies = dict[str, str]


class BlockId(msgspec.Struct, gc=False):
    """A block id; ``shard`` is hex."""

    workchain: int
    shard: str | None
    seqno: int


class Block(msgspec.Struct, gc=False):
    """A block's header; lt and time are decimal text."""

    workchain: int
    shard: str
    seqno: int
    root_hash: str
    file_hash: str
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
    gen_utime: str
    start_lt: str
    end_lt: str
    validator_list_hash_short: int
    gen_catchain_seqno: int
    min_ref_mc_seqno: int
    prev_key_block_seqno: int
    vert_seqno: int
    master_ref_seqno: int
    rand_seed: str
    created_by: str
    tx_count: int
    masterchain_block_ref: BlockId
    prev_blocks: list[BlockId]


class StoragePhase(msgspec.Struct, gc=False):
    """Storage phase: storage fees."""

    storage_fees_collected: str | Omitted = UNSET
    storage_fees_due: str | Omitted = UNSET
    status_change: str | Omitted = UNSET


class CreditPhase(msgspec.Struct, gc=False):
    """Credit phase: value credited."""

    due_fees_collected: str | Omitted = UNSET
    credit: str | Omitted = UNSET
    credit_extra_currencies: Currencies | Omitted = UNSET


class ComputePhase(msgspec.Struct, gc=False):
    """Compute phase: TVM execution, or why it was skipped."""

    skipped: bool | Omitted = UNSET
    reason: str | Omitted = UNSET
    success: bool | Omitted = UNSET
    msg_state_used: bool | Omitted = UNSET
    account_activated: bool | Omitted = UNSET
    gas_fees: str | Omitted = UNSET
    gas_used: str | Omitted = UNSET
    gas_limit: str | Omitted = UNSET
    gas_credit: str | Omitted = UNSET
    mode: int | Omitted = UNSET
    exit_code: int | Omitted = UNSET
    exit_arg: int | Omitted = UNSET
    vm_steps: int | Omitted = UNSET
    vm_init_state_hash: str | Omitted = UNSET
    vm_final_state_hash: str | Omitted = UNSET


class MessageSize(msgspec.Struct, gc=False):
    """Size of messages in cells and bits, as decimal text."""

    cells: str | None
    bits: str | None


class ActionPhase(msgspec.Struct, gc=False):
    """Action phase: results of the action list."""

    success: bool | Omitted = UNSET
    valid: bool | Omitted = UNSET
    no_funds: bool | Omitted = UNSET
    status_change: str | Omitted = UNSET
    total_fwd_fees: str | Omitted = UNSET
    total_action_fees: str | Omitted = UNSET
    result_code: int | Omitted = UNSET
    result_arg: int | Omitted = UNSET
    tot_actions: int | Omitted = UNSET
    spec_actions: int | Omitted = UNSET
    skipped_actions: int | Omitted = UNSET
    msgs_created: int | Omitted = UNSET
    action_list_hash: str | Omitted = UNSET
    tot_msg_size: MessageSize | Omitted = UNSET


class BouncePhase(msgspec.Struct, gc=False):
    """Bounce phase."""

    type: str | None = None
    msg_size: MessageSize | Omitted = UNSET
    req_fwd_fees: str | Omitted = UNSET
    msg_fees: str | Omitted = UNSET
    fwd_fees: str | Omitted = UNSET


class SplitInfo(msgspec.Struct, gc=False):
    """Accounts of a split or merge transaction."""

    cur_shard_pfx_len: int | Omitted = UNSET
    acc_split_depth: int | Omitted = UNSET
    this_addr: str | Omitted = UNSET
    sibling_addr: str | Omitted = UNSET


class TransactionDescr(msgspec.Struct, gc=False):
    """Transaction type and phases."""

    type: str
    aborted: bool | Omitted = UNSET
    destroyed: bool | Omitted = UNSET
    credit_first: bool | Omitted = UNSET
    is_tock: bool | Omitted = UNSET
    installed: bool | Omitted = UNSET
    storage_ph: StoragePhase | Omitted = UNSET
    credit_ph: CreditPhase | Omitted = UNSET
    compute_ph: ComputePhase | Omitted = UNSET
    action: ActionPhase | Omitted = UNSET
    bounce: BouncePhase | Omitted = UNSET
    split_info: SplitInfo | Omitted = UNSET


class MessageContent(msgspec.Struct, gc=False):
    """A message's body, or its initial state, as a bag of cells."""

    hash: str | None
    body: str | None
    decoded: dict[str, object] | None = None


class Message(msgspec.Struct, gc=False):
    """A message; amounts, lt and time are decimal text."""

    hash: str
    source: str | None
    destination: str | None
    value: str | None
    value_extra_currencies: Currencies | None
    fwd_fee: str | None
    ihr_fee: str | None
    extra_flags: str | None
    created_lt: str | None
    created_at: str | None
    opcode: str | int | None
    decoded_opcode: str | None
    ihr_disabled: bool | None
    bounce: bool | None
    bounced: bool | None
    import_fee: str | None
    message_content: MessageContent | None
    init_state: MessageContent | None
    in_msg_tx_hash: str | Omitted = UNSET
    out_msg_tx_hash: str | Omitted = UNSET
    hash_norm: str | Omitted = UNSET


class AccountState(msgspec.Struct, gc=False):
    """An account before or after a transaction; only ``hash`` if the state is unknown."""

    hash: str
    balance: str | None = None
    extra_currencies: Currencies | None = None
    account_status: str | None = None
    frozen_hash: str | None = None
    data_hash: str | None = None
    code_hash: str | None = None


class Transaction(msgspec.Struct, gc=False):
    """A transaction with its messages and the account's states around it."""

    account: str
    hash: str
    lt: str
    now: int
    mc_block_seqno: int | None
    prev_trans_hash: str
    prev_trans_lt: str
    orig_status: str
    end_status: str
    total_fees: str
    total_fees_extra_currencies: Currencies
    description: TransactionDescr
    block_ref: BlockId | None
    in_msg: Message | None
    out_msgs: list[Message]
    account_state_before: AccountState | None
    account_state_after: AccountState | None
    trace_id: str | Omitted = UNSET
    emulated: bool = False
    finality: str = "finalized"
