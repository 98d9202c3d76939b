"""The genuine networks, as tests of decoded blocks know them."""

from __future__ import annotations

from tests.ingest.block.conftest import demo, frozen, main, network

__all__ = ["demo", "frozen", "main", "network"]
