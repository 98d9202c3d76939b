"""The v2 HTTP API."""
