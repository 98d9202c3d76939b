"""Which methods a path takes: the header Allow of a refusal, and of the answer to OPTIONS."""

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
    """Return the value of the header Allow; "" where no route has the path.

    All routes that match are taken together: the framework names those of one route alone.
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
    """Return whether a route ends with a parameter for any path, and begins as this one does."""
    *before, last = route.path_components or ("",)
    return not isinstance(last, str) and last.type is Path and parts[: len(before)] == before
