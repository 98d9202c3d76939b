"""Pages over the demo lake, and what the API says about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from litestar.testing import TestClient

    from tests.api.explorer.page import Walker


@pytest.fixture(scope="session")
def walk(client: TestClient[Any]) -> Walker:
    from tests.api.explorer.page import Walker

    return Walker(client)


@pytest.fixture(scope="session")
def ask(client: TestClient[Any]) -> Callable[..., Any]:
    """Ask an operation of the API v3."""

    def call(operation: str, **params: Any) -> Any:
        return client.get(f"/api/v3/{operation}", params=params).json()

    return call


@pytest.fixture(scope="session")
def transfer(ask: Callable[..., Any]) -> dict[str, Any]:
    """The newest transfer of a jetton."""
    found: dict[str, Any] = ask("actions", action_type="jetton_transfer", limit=1)["actions"][0]
    return found
