"""Adapts the OpenAPI document to generators of clients."""

from __future__ import annotations

import re


def name_operation(api: str, verb: str, path: str) -> str:
    """Return the id of an operation, which generated clients use as a function name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path.strip("/").replace("/", "_"))
    return f"{api}_{verb}_{words}".lower()


def complete_arrays(value: object) -> None:
    """Add empty ``items`` to arrays of anything: generators refuse arrays without items."""
    if isinstance(value, dict):
        if value.get("type") == "array" and not {"items", "prefixItems"} & value.keys():
            value["items"] = {}
        for each in value.values():
            complete_arrays(each)
    elif isinstance(value, list):
        for each in value:
            complete_arrays(each)
