"""The form of the public data set: tables and columns that are read, and what it does not have.

Source: the exporters' schemas (github.com/ton-studio/ton-etl). Hashes are base64, accounts are raw
addresses, shards are signed; a folder per table has a folder per UTC day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.ingest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCKS = {
    "int": "workchain shard seqno mc_block_seqno global_id version flags gen_utime start_lt end_lt"
    " validator_list_hash_short gen_catchain_seqno min_ref_mc_seqno prev_key_block_seqno vert_seqno"
    " master_ref_seqno tx_count",
    "bool": "after_merge before_split after_split want_merge want_split key_block vert_seqno_incr",
    "text": "root_hash file_hash rand_seed created_by",
}
_TRANSACTIONS = {
    "int": "lt block_shard block_seqno mc_block_seqno prev_trans_lt now total_fees"
    " storage_fees_collected storage_fees_due credit_due_fees_collected credit compute_gas_fees"
    " compute_gas_used compute_gas_limit compute_gas_credit compute_mode compute_exit_code"
    " compute_exit_arg compute_vm_steps action_total_fwd_fees action_total_action_fees"
    " action_result_code action_result_arg action_tot_actions action_spec_actions"
    " action_skipped_actions action_msgs_created action_tot_msg_size_cells"
    " action_tot_msg_size_bits bounce_msg_size_cells bounce_msg_size_bits bounce_req_fwd_fees"
    " bounce_msg_fees bounce_fwd_fees split_info_cur_shard_pfx_len split_info_acc_split_depth",
    "bool": "aborted destroyed credit_first is_tock installed compute_skipped compute_success"
    " compute_msg_state_used compute_account_activated action_success action_valid"
    " action_no_funds",
    "text": "account hash prev_trans_hash orig_status end_status account_state_hash_before"
    " account_state_hash_after descr storage_status_change skipped_reason"
    " compute_vm_init_state_hash compute_vm_final_state_hash action_status_change"
    " action_action_list_hash bounce split_info_this_addr split_info_sibling_addr",
}
_MESSAGES = {
    "int": "tx_now value fwd_fee ihr_fee created_lt created_at opcode import_fee",
    "bool": "ihr_disabled bounce bounced",
    "text": "tx_hash msg_hash direction source destination body_hash init_state_hash",
    "bytes": "body_boc init_state_boc",
}
_STATES = {
    "int": "balance timestamp last_trans_lt",
    "text": "account hash account_status last_trans_hash frozen_hash data_hash code_hash",
    "bytes": "data_boc code_boc",
}

FORM: dict[str, dict[str, str]] = {
    table: {name: kind for kind, names in kinds.items() for name in names.split()}
    for table, kinds in (
        ("blocks", _BLOCKS),
        ("transactions", _TRANSACTIONS),
        ("messages", _MESSAGES),
        ("account_states", _STATES),
    )
}
"""The columns that are read of each table, each with its kind."""

TIMES = {
    "blocks": "gen_utime",
    "transactions": "now",
    "messages": "tx_now",
    "account_states": "timestamp",
}
"""The column whose UTC day names the folder of a row."""

LACKING: dict[str, tuple[str, ...]] = {
    "blocks": (
        *("gen_software_version", "gen_software_capabilities"),
        *("state_root_hash", "boc_bytes"),
    ),
    "transactions": ("total_fees_extra_currencies", "credit_extra_currencies", "boc"),
    "messages": ("value_extra_currencies", "extra_flags", "destination_kind"),
    "account_states": (
        *("extra_currencies", "extra_currencies_hash", "library_hash", "fixed_prefix_length"),
        *("special_tick", "special_tock", "storage_cells", "storage_bits", "storage_last_paid"),
        *("storage_due_payment", "storage_last_trans_lt"),
    ),
}
"""Columns of ours that the data set does not determine: they are NULL, ``destination_kind`` only
where the destination is external. ``previous`` hashes of the first blocks of a lake are NULL, too.
"""

LACKING_TABLES = ("libraries", "queue_sizes", "block_proofs")
"""Tables of ours that stay empty. Of ``state_cells`` there are the cells of code and data."""

_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "int": pa.types.is_integer,
    "bool": pa.types.is_boolean,
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "bytes": lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
}


def check_columns(file: str, table: str, found: pa.Schema) -> None:
    """Compare the columns of a file with the form; columns that are not read may be there.

    Raises:
        SourceError: a column is missing, or has another type; the message names all of them.
    """
    form = FORM[table]
    lacking = [name for name in form if name not in found.names]
    other = [
        f"{name} is {found.field(name).type} and not {kind}"
        for name, kind in form.items()
        if name in found.names
        and not (_KINDS[kind](found.field(name).type) or pa.types.is_null(found.field(name).type))
    ]
    if lacking or other:
        unknown = [name for name in found.names if name not in form]
        parts = [f"it lacks {', '.join(lacking)}"] if lacking else []
        parts += other
        if lacking and unknown:
            parts.append(f"it has {', '.join(unknown)}, which are not read")
        raise SourceError(
            f"{file} has other columns than {table} of the data set: " + "; ".join(parts)
        )
