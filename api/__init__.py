"""The HTTP API: v2 and v3 of TON Center over a snapshot of the lake."""
