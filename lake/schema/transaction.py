"""Tables of transactions (phases flattened), messages with their bodies, and account states.

TL-B: transaction$0111, TransactionDescr, Tr*Phase, message$_, CommonMsgInfo, account$1.
"""

from tonlake.lake.schema.column import Column, make_table, one_of, optional

ACCOUNT_STATUSES = ("uninit", "frozen", "active", "nonexist")
STATUS_CHANGES = ("unchanged", "frozen", "deleted")
DESCRIPTIONS = (
    *("ord", "storage", "tick_tock"),
    *("split_prepare", "split_install", "merge_prepare", "merge_install"),
)
MESSAGE_KINDS = ("int", "ext_in", "ext_out")
ADDRESS_KINDS = ("std", "none", "extern", "var")

ACCOUNT_STATES = make_table(
    "account_states",
    "One row per account and block that touched it: the state after the block. "
    "Rows of a zero state have mc_seqno 0, block_seqno 0 and last_trans_lt 0. Rows of the "
    "baseline have the block before the lake's first as mc_seqno; shard, block_seqno and utime "
    "are those of the shard state they were read from.",
    Column("workchain", "int32", "Workchain of the account"),
    Column("account", "hash", "Account id, 32 bytes"),
    Column("mc_seqno", "int64", "Masterchain block that commits the block"),
    Column("shard", "int64", "Shard of the block, signed 64-bit"),
    Column("block_seqno", "int64", "Seqno of the block inside its shard"),
    Column("utime", "int64", "Unix seconds of the block"),
    Column("hash", "hash", "Hash of the Account cell"),
    one_of("account_status", *ACCOUNT_STATUSES),
    Column("balance", "int64", "Nanoton; 0 if nonexist"),
    Column("extra_currencies", "json", "Extra currencies, id to amount", nullable=True),
    Column("last_trans_lt", "int64", "Logical time of the account's last transaction"),
    Column("last_trans_hash", "hash", "Its hash; zeroes in a zero state"),
    *optional(
        Column("frozen_hash", "hash", "frozen: hash of the state that was frozen"),
        Column("code_hash", "hash", "active: hash of the code cell (of the library cell)"),
        Column("data_hash", "hash", "active: hash of the data cell"),
        Column("library_hash", "hash", "active: root of the account's library dictionary"),
        Column("fixed_prefix_length", "int8", "StateInit.fixed_prefix_length"),
        Column("special_tick", "bool", "StateInit.special.tick"),
        Column("special_tock", "bool", "StateInit.special.tock"),
        Column("storage_cells", "int64", "StorageUsed.cells"),
        Column("storage_bits", "int64", "StorageUsed.bits"),
        Column("storage_last_paid", "int64", "Unix seconds of the last storage payment"),
        Column("storage_due_payment", "int64", "Nanoton due for storage"),
        Column("storage_last_trans_lt", "int64", "AccountStorage.last_trans_lt"),
        Column(
            "extra_currencies_hash",
            "hash",
            "Root of the extra-currency dictionary; set with extra_currencies NULL when the "
            "dictionary lies in a block before the lake's first",
        ),
    ),
    key=("workchain", "account", "mc_seqno", "block_seqno"),
)

STATE_CELLS = make_table(
    "state_cells",
    "Cells of touched accounts and of public libraries, by hash. Unique in each file; the "
    "view is unique overall.",
    Column("hash", "hash", "Representation hash the cell has in the state"),
    Column("mc_seqno", "int64", "Masterchain block whose commit added it"),
    Column("cell", "bytes", "Descriptors d1, d2 and data, as in a bag of cells"),
    Column("refs", "hashes", "Hashes of the child cells, in order"),
    key=("hash",),
)


_IDENTITY = (
    Column("workchain", "int32", "Workchain of the account"),
    Column("account", "hash", "Account id, 32 bytes"),
    Column("lt", "int64", "Logical time"),
    Column("hash", "hash", "Hash of the transaction cell"),
    Column("shard", "int64", "Shard of the block, signed 64-bit", nullable=True),
    Column("block_seqno", "int64", "Seqno of the block inside its shard"),
    Column("mc_seqno", "int64", "Masterchain block that commits the block"),
    Column("now", "int64", "Unix seconds"),
    Column("time", "time", "now as UTC timestamp"),
    Column("prev_trans_hash", "hash", "Previous transaction of the account; zeroes for the first"),
    Column("prev_trans_lt", "int64", "Its logical time; 0 for the first"),
    one_of("orig_status", *ACCOUNT_STATUSES, doc="Account status before"),
    one_of("end_status", *ACCOUNT_STATUSES, doc="Account status after"),
    Column("outmsg_cnt", "int32", "Number of out messages"),
    Column("in_msg_hash", "hash", "Hash of the in message as stored", nullable=True),
    Column("total_fees", "int64", "Fees in nanoton"),
    Column("total_fees_extra_currencies", "json", "Extra currencies, id to amount", nullable=True),
    Column("account_state_hash_before", "hash", "Hash of the Account cell before"),
    Column("account_state_hash_after", "hash", "Hash of the Account cell after"),
    one_of("descr", *DESCRIPTIONS),
)

_FLAGS = optional(
    Column("aborted", "bool", "The transaction was aborted"),
    Column("destroyed", "bool", "The account was destroyed"),
    Column("credit_first", "bool", "The credit phase came before the storage phase"),
    Column("is_tock", "bool", "tick_tock: whether it is tock"),
    Column("installed", "bool", "split_install: the split was installed"),
)

_STORAGE = optional(
    Column("storage_fees_collected", "int64", "Storage phase: nanoton collected"),
    Column("storage_fees_due", "int64", "Storage phase: nanoton still due"),
    one_of("storage_status_change", *STATUS_CHANGES, doc="Storage phase"),
)

_CREDIT = optional(
    Column("credit_due_fees_collected", "int64", "Credit phase: due nanoton collected"),
    Column("credit", "int64", "Credit phase: nanoton credited"),
    Column("credit_extra_currencies", "json", "Credit phase: extra currencies, id to amount"),
)

_COMPUTE = optional(
    Column("compute_skipped", "bool", "Compute phase was skipped"),
    one_of("compute_skip_reason", "no_state", "bad_state", "no_gas", "suspended"),
    Column("compute_success", "bool", "Compute phase succeeded"),
    Column("compute_msg_state_used", "bool", "The message's StateInit was used"),
    Column("compute_account_activated", "bool", "The account was activated"),
    Column("compute_gas_fees", "int64", "Gas fees in nanoton"),
    Column("compute_gas_used", "int64", "Gas used"),
    Column("compute_gas_limit", "int64", "Gas limit"),
    Column("compute_gas_credit", "int64", "Gas credit"),
    Column("compute_mode", "int8", "TVM mode"),
    Column("compute_exit_code", "int32", "TVM exit code"),
    Column("compute_exit_arg", "int32", "TVM exit argument"),
    Column("compute_vm_steps", "int64", "TVM steps"),
    Column("compute_vm_init_state_hash", "hash", "Hash of the first TVM state"),
    Column("compute_vm_final_state_hash", "hash", "Hash of the last TVM state"),
)

_ACTION = optional(
    Column("action_success", "bool", "Action phase succeeded"),
    Column("action_valid", "bool", "The action list was valid"),
    Column("action_no_funds", "bool", "Not enough coins for the actions"),
    one_of("action_status_change", *STATUS_CHANGES),
    Column("action_total_fwd_fees", "int64", "Forward fees in nanoton"),
    Column("action_total_action_fees", "int64", "Action fees in nanoton"),
    Column("action_result_code", "int32", "Result code"),
    Column("action_result_arg", "int32", "Result argument: index of the failing action"),
    Column("action_tot_actions", "int32", "Number of actions"),
    Column("action_spec_actions", "int32", "Special actions"),
    Column("action_skipped_actions", "int32", "Skipped actions"),
    Column("action_msgs_created", "int32", "Messages created"),
    Column("action_list_hash", "hash", "Hash of the action list"),
    Column("action_tot_msg_size_cells", "int64", "Cells of all messages"),
    Column("action_tot_msg_size_bits", "int64", "Bits of all messages"),
)

_BOUNCE = optional(
    one_of("bounce", "negfunds", "nofunds", "ok", doc="Bounce phase"),
    Column("bounce_msg_size_cells", "int64", "Cells of the bounced message"),
    Column("bounce_msg_size_bits", "int64", "Bits of the bounced message"),
    Column("bounce_req_fwd_fees", "int64", "Forward fees required but not available, nanoton"),
    Column("bounce_msg_fees", "int64", "Message fees in nanoton"),
    Column("bounce_fwd_fees", "int64", "Forward fees in nanoton"),
)

_SPLIT = optional(
    Column("split_info_cur_shard_pfx_len", "int32", "Split or merge: shard prefix length"),
    Column("split_info_acc_split_depth", "int32", "Split or merge: account split depth"),
    Column("split_info_this_addr", "hash", "Split or merge: this account"),
    Column("split_info_sibling_addr", "hash", "Split or merge: its sibling"),
)

TRANSACTIONS = make_table(
    "transactions",
    "One row per transaction; columns of a phase that did not run are NULL.",
    *_IDENTITY,
    *_FLAGS,
    *_STORAGE,
    *_CREDIT,
    *_COMPUTE,
    *_ACTION,
    *_BOUNCE,
    *_SPLIT,
    *optional(
        Column(
            "boc",
            "bytes",
            "Transaction cell as bag of cells; NULL in most rows of schema version 2",
        )
    ),
    key=("workchain", "account", "lt"),
    sort=("lt", "workchain", "account"),
)


MESSAGES = make_table(
    "messages",
    "One row per message and transaction: 'in' where consumed, 'out' where produced. The view "
    "traced_messages joins the trace (transaction_traces: tx_hash = hash, tx_lt = lt), "
    "decoded_messages the decoded body (message_bodies).",
    Column("tx_workchain", "int32", "Workchain of the transaction's account"),
    Column("tx_account", "hash", "Account of the transaction"),
    Column("tx_lt", "int64", "Logical time of the transaction"),
    Column("tx_hash", "hash", "Hash of the transaction"),
    Column("mc_seqno", "int64", "Masterchain block that commits the transaction"),
    Column("now", "int64", "Unix seconds of the transaction"),
    one_of("direction", "in", "out"),
    Column("msg_index", "int32", "Index among the out messages, from 0; 0 for in"),
    Column("msg_hash", "hash", "Hash of the message cell as stored in the transaction"),
    Column("hash_norm", "hash", "ext_in: hash of the normal form (TEP-467)", nullable=True),
    one_of("kind", *MESSAGE_KINDS),
    *optional(
        Column("source_workchain", "int32", "Workchain of the source"),
        Column("source", "hash", "Source account id; NULL unless std, or var of 256 bits"),
    ),
    one_of("source_kind", *ADDRESS_KINDS, doc="MsgAddress constructor"),
    *optional(
        Column("destination_workchain", "int32", "Workchain of the destination"),
        Column("destination", "hash", "Destination; NULL unless std, or var of 256 bits"),
        one_of("destination_kind", *ADDRESS_KINDS, doc="MsgAddress constructor"),
        Column("value", "int64", "int: value in nanoton"),
        Column("value_extra_currencies", "json", "int: extra currencies, id to amount"),
        Column("fwd_fee", "int64", "int: remaining forward fee, nanoton"),
        Column("ihr_fee", "int64", "int: IHR fee; 0 from global version 12 (ConfigParam 8)"),
        Column("extra_flags", "amount", "int: extra_flags, from global version 12 (ConfigParam 8)"),
        Column("created_lt", "int64", "int and ext_out: logical time of creation"),
        Column("created_at", "int64", "int and ext_out: unix seconds of creation"),
        Column("ihr_disabled", "bool", "int: IHR is disabled"),
        Column("bounce", "bool", "int: bounce if processing fails"),
        Column("bounced", "bool", "int: this is a bounced message"),
        Column("import_fee", "int64", "ext_in: import fee; NULL above 2^63-1"),
        Column("opcode", "int32", "First 32 bits of the body, signed; NULL if shorter"),
    ),
    Column("body_hash", "hash", "Hash of the body cell"),
    *optional(
        Column("body", "bytes", "Body as bag of cells"),
        Column("init_state_hash", "hash", "Hash of the StateInit cell"),
        Column("init_state", "bytes", "StateInit as bag of cells"),
    ),
    key=("tx_hash", "direction", "msg_index"),
    sort=("tx_lt", "tx_workchain", "tx_account", "direction", "msg_index"),
)


MESSAGE_BODIES = make_table(
    "message_bodies",
    "One row per distinct message body of a masterchain block, decoded by its TL-B layout. "
    "Join on mc_seqno, body_hash and external_in (messages.kind = 'ext_in'). Files written by "
    "older versions have one row per body and file, until tonlake rebuild bodies runs.",
    Column("body_hash", "hash", "Hash of the body cell"),
    Column("external_in", "bool", "External-in message: decoded by wallet layouts"),
    Column("mc_seqno", "int64", "Masterchain block with such a message"),
    *optional(
        Column(
            "decoded_opcode",
            "text",
            "Name of the opcode; NULL if unknown, if below 65536 and no layout matches, or if "
            "the layout would leave most of the body",
        ),
        Column(
            "decoded",
            "json",
            "The decoded body; NULL if no layout matches. The key limit names the limit that "
            "kept it or a part of it from being decoded",
        ),
    ),
    key=("body_hash", "external_in", "mc_seqno"),
    sort=("decoded_opcode", "body_hash", "external_in", "mc_seqno"),
)
