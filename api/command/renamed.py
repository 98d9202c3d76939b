"""Settings as they were named before they had sections: refused, with the name of today."""

from __future__ import annotations

_RENAMED = """
keys_file access.keys_file
keys_required access.keys_required
rate_limits access.rate_limits
anonymous_rps access.anonymous_rps
requests_in_flight http.requests_in_flight
request_wait_ms http.request_wait_ms
request_threads http.request_threads
query_timeout_ms http.query_timeout_ms
response_bytes http.response_bytes
answer_cache_mib http.cache_mib
cors_origins http.cors_origins
v2_max_limit http.max_limit
v3_max_limit http.max_limit
opcode_format http.opcode_format
testnet http.testnet
strict_parameters http.strict_parameters
otel_endpoint metrics.otel_endpoint
undo_mc_blocks follow.undo_mc_blocks
ready_lag_s follow.ready_lag_s
upkeep_commits lake.maintenance_commits
build_lookups lake.build_index
lookup_memory_rows lake.index_memory_rows
row_group_rows lake.row_group_rows
zstd_level lake.zstd_level
compact_rows lake.compact_rows
compact_commits lake.compact_commits
orphan_grace_s lake.orphan_grace_s
check_digests lake.check_digests
cells_in_memory lake.cells_in_memory
duckdb_memory_mib lake.duckdb_memory_mib
duckdb_threads lake.duckdb_threads
remembered_rows ingest.cached_rows
mc_blocks_per_commit ingest.mc_blocks_per_commit
commit_bytes ingest.commit_bytes
mc_blocks_per_chunk ingest.mc_blocks_per_chunk
block_proofs ingest.block_proofs
detect_contracts ingest.detect_contracts
classify_actions ingest.classify_actions
emulator_library tvm.emulator_library
fetch_metadata metadata.enabled
ipfs_gateway metadata.ipfs_gateway
"""
"""Old name, and section and name of today; ``http_port`` of ``http.port`` needs no line."""

RENAMED: dict[str, tuple[str, str]] = {
    old: (section, name)
    for old, _, new in (line.partition(" ") for line in _RENAMED.split("\n") if line)
    for section, _, name in [new.partition(".")]
}

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
