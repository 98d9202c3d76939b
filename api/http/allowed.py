"""Computes the ``Allow`` header of a path, for 405 responses and for OPTIONS."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from litestar.routes import HTTPRoute

if TYPE_CHECKING:
    from litestar import Litestar

_PATHS_KEPT = 1024


@lru_cache(_PATHS_KEPT)
def list_methods(app: Litestar, path: str) -> str:
    """Return the value of the ``Allow`` header; "" if no route matches the path.

    The methods of all matching routes are combined; the framework would list those of one route.
    """
    parts = [part for part in path.split("/") if part]
    routes = [route for route in app.routes if isinstance(route, HTTPRoute)]
    found = [route for route in routes if _matches(route, parts)]
    if not found:
        found = [route for route in routes if _takes_rest(route, parts)]
    return ", ".join(sorted({method for route in found for method in route.methods}))


def _matches(route: HTTPRoute, parts: list[str]) -> bool:
    components = route.path_components
    return len(components) == len(parts) and all(
        one == part if isinstance(one, str) else one.type is not Path
        for one, part in zip(components, parts, strict=True)
    )


def _takes_rest(route: HTTPRoute, parts: list[str]) -> bool:
    """Return whether a route ends with a catch-all path parameter and its prefix matches."""
    *before, last = route.path_components or ("",)
    return not isinstance(last, str) and last.type is Path and parts[: len(before)] == before
