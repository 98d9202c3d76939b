"""Clients of version 2, over the demo lake or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from httpx import Response
    from litestar.testing import TestClient

FALSE_PROOF = "te6ccgEBAgEAKAAJRgMAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAA"
"""A Merkle proof with a hash that its child does not have."""


class Asker:
    """Calls methods of version 2 and unwraps their envelopes."""

    def __init__(self, client: TestClient[Any]) -> None:
        self.client = client

    def raw(self, method: str, /, **params: Any) -> Response:
        """Return the whole response to a GET request."""
        return self.client.get(f"/api/v2/{method}", params=params)

    def __call__(self, method: str, /, **params: object) -> Any:
        """Return the result of a method that must succeed."""
        answer = self.raw(method, **params)
        body = answer.json()
        assert answer.status_code == 200, body
        assert body["ok"] is True
        return body["result"]

    def post(self, method: str, /, **params: object) -> Any:
        """Return the result of a method called by POST."""
        answer = self.client.post(f"/api/v2/{method}", json=params)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def rpc(self, method: str, params: object) -> Response:
        """Return the whole response to a jsonRPC request."""
        body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        return self.client.post("/api/v2/jsonRPC", json=body)

    def refused(self, method: str, /, **params: object) -> tuple[int, str]:
        """Return status and text of a method that must fail."""
        answer = self.raw(method, **params)
        body = answer.json()
        assert body["ok"] is False
        assert body["code"] == answer.status_code
        assert isinstance(body["@extra"], str)
        return answer.status_code, body["error"]


@pytest.fixture(scope="session")
def asker() -> type[Asker]:
    """The client class, for tests over a lake of their own."""
    return Asker


@pytest.fixture(scope="session")
def ask(client: TestClient[Any]) -> Asker:
    """A client over the whole demo lake."""
    return Asker(client)
