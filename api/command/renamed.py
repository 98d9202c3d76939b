"""Settings as they were named before they had sections: refused, with the name of today."""

from __future__ import annotations

RENAMED = {
    "answer_cache_mib": "http_cache_mib",
    "build_lookups": "lake_build_index",
    "fetch_metadata": "metadata_enabled",
    "lookup_memory_rows": "lake_index_memory_rows",
    "remembered_rows": "ingest_cached_rows",
    "upkeep_commits": "lake_maintenance_commits",
    "v2_max_limit": "http_max_limit",
    "v3_max_limit": "http_max_limit",
}
"""Old names, and section and name of today; what only moved into a section needs no line."""

_REMOVED = """
checkpoint_commits chunk_bytes compact_memory_rows contract_gas_limit contract_wall_ms
emulated_transactions follow_heal_s key_rps liteserver_timeout_ms lookup_part_rows
metadata_attempts metadata_bytes metadata_connections metadata_poll_s metadata_redirects
metadata_refresh_s metadata_retry_s metadata_timeout_ms open_indexes pending_expiry_s plain_rows
request_body_bytes sql_queue sql_text_bytes stream_client_events table_rows
transactions_per_commit tvm_libraries tvm_queue tvm_result_bytes tvm_stack_depth tvm_stack_entries
tvm_wait_ms upstream_timeout_ms v2_default_count v2_default_limit v2_max_count v3_decode_limit
v3_default_limit v3_page_transactions v3_trace_transactions
"""
REMOVED = frozenset(_REMOVED.split())
"""Old names whose values are fixed today."""
