"""Compressed responses and ETags, read by node's ``fetch`` and by httpx."""

import hashlib
import json
import shutil
import subprocess

import httpx
import pytest

from tests.clients.packages import NODE, RUN_S

PATHS = ["/api/v3/transactions?limit=50", "/api/v3/masterchainInfo", "/openapi.json"]


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def test_fetch_of_node_reads_compressed_answers(server: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on this machine")
    plan = json.dumps({"url": server, "paths": PATHS})
    done = subprocess.run(
        [node, NODE / "fetch.mjs"],
        input=plan,
        capture_output=True,
        timeout=RUN_S,
        check=True,
        text=True,
    )
    for path, found in zip(PATHS, json.loads(done.stdout), strict=True):
        plain = httpx.get(server + path, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert (found["status"], found["coding"]) == (200, "gzip")
        assert found["sha256"] == _digest(plain.content)
        known = "etag" in plain.headers
        assert (found["again"], found["bytes"] == 0) == (304 if known else 200, known)


def test_httpx_reads_compressed_answers(server: str) -> None:
    with httpx.Client(base_url=server) as client:
        for path in PATHS:
            plain = client.get(path, headers={"Accept-Encoding": "identity"})
            answer = client.get(path)
            # httpx asks for zstd where the package is installed, as it is for tonlake.
            assert answer.headers["content-encoding"] == "zstd"
            assert answer.content == plain.content
