"""What generators of clients need of an OpenAPI document beyond the standard."""

from __future__ import annotations

import re


def name_operation(api: str, verb: str, path: str) -> str:
    """Return the id of an operation, from which generated clients take the names of functions."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path.strip("/").replace("/", "_"))
    return f"{api}_{verb}_{words}".lower()


def complete_arrays(value: object) -> None:
    """Let arrays whose items may be anything say so: generators refuse those without items."""
    if isinstance(value, dict):
        if value.get("type") == "array" and not {"items", "prefixItems"} & value.keys():
            value["items"] = {}
        for each in value.values():
            complete_arrays(each)
    elif isinstance(value, list):
        for each in value:
            complete_arrays(each)
