"""The HTTP API: how an answer is said. v2 and v3 of TON Center over one snapshot of the lake."""
