"""The routes of version 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler

routes: list[HTTPRouteHandler] = []
