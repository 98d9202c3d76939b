"""Settings of services under test: no machine is too slow for them.

Tests of limits set limits of their own.
"""

from __future__ import annotations

from typing import Any

from lake.settings import Settings

LIMITS: dict[str, Any] = {
    "query_timeout_ms": 60_000,
    "tvm_wall_ms": 60_000,
    "tvm_wait_ms": 60_000,
    "sql_timeout_ms": 60_000,
    "upstream_timeout_ms": 60_000,
    "request_wait_ms": 60_000,
}

PATIENT = Settings(**LIMITS)
