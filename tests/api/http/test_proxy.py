"""Forwarded requests belong to the forwarded client, and are never local."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

from tests.api.http.server import make_connections
from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.api.http.gate import FORWARDED
from tonlake.api.http.proxy import Proxies, read_networks
from tonlake.lake.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

FORWARDING = [
    {"X-Forwarded-For": "192.0.2.7"},
    {"Forwarded": "for=192.0.2.7"},
    {"X-Real-IP": "192.0.2.7"},
    {"Via": "1.1 proxy"},
    {"X-Forwarded-Host": "api.example.org"},
    {"X-Forwarded-Proto": "https"},
    {"CF-Connecting-IP": "192.0.2.7"},
]


def forward(peer: str, text: str, trusted: str) -> tuple[str, bool]:
    """Return the client that the application sees, and whether it is seen as forwarded."""
    found: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        found.append((scope["client"][0], FORWARDED in scope.get("state", {})))

    headers = [(b"x-forwarded-for", text.encode())] if text else []
    scope: Any = {"type": "http", "client": (peer, 1000), "headers": headers}
    layer = Proxies(app, make_connections(), trusted=read_networks(trusted))
    asyncio.run(layer(scope, None, None))  # type: ignore[arg-type]
    return found[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("peer", "text", "trusted", "client"),
    [
        ("127.0.0.1", "192.0.2.7", "127.0.0.1,::1", "192.0.2.7"),
        ("127.0.0.1", "6.6.6.6, 192.0.2.7", "127.0.0.1", "192.0.2.7"),
        ("127.0.0.1", "192.0.2.7, 10.1.2.3", "127.0.0.1, 10.0.0.0/8", "192.0.2.7"),
        ("127.0.0.1", "192.0.2.7", "", "127.0.0.1"),
        ("198.51.100.1", "192.0.2.7", "127.0.0.1", "198.51.100.1"),
        ("198.51.100.1", "192.0.2.7", "*", "192.0.2.7"),
    ],
)
def test_the_client_is_whom_a_trusted_proxy_names(
    peer: str, text: str, trusted: str, client: str
) -> None:
    assert forward(peer, text, trusted) == (client, True)
    assert forward(peer, "", trusted) == (peer, False)


def test_what_is_no_network_is_refused(demo_lake: Path) -> None:
    with pytest.raises(SettingsError, match="trusted_proxies"):
        create_app(demo_lake, compose(access={"trusted_proxies": "127.0.0.1, proxy"}))


@pytest.mark.parametrize("trusted", ["127.0.0.1", ""])
@pytest.mark.parametrize("headers", FORWARDING)
def test_nothing_forwarded_is_local(demo_lake: Path, headers: dict[str, str], trusted: str) -> None:
    settings = compose(access={"trusted_proxies": trusted, "anonymous_rps": 2})
    app: Any = create_app(demo_lake, settings, clock=lambda: 0.0)
    with TestClient(app) as client:
        assert [client.get("/metrics").status_code for _ in range(5)] == [200] * 5
        found = [client.get("/metrics", headers=headers).status_code for _ in range(5)]
        assert found == [401, 401, 429, 429, 429]
