"""The v3 HTTP API."""
