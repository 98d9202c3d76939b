"""Loads descriptions and examples of parameters for the OpenAPI document."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]


class Parameter(msgspec.Struct, frozen=True):
    """The description of a parameter, and an example as text."""

    example: str
    description: str

    def read_example(self, schema: Schema) -> Any:  # noqa: ANN401 - of the schema's type
        """Return the example in the type of ``schema``."""
        if "anyOf" in schema:
            return self.read_example(schema["anyOf"][0])
        if schema["type"] == "array" and self.example != "[]":
            return [self.read_example(schema["items"])]
        return self.example if schema["type"] == "string" else msgspec.json.decode(self.example)


@cache
def load_parameters() -> Mapping[tuple[str, str], Parameter]:
    """Return the parameters by name and path ("" for any path), from ``parameters.txt``."""
    text = files("tonlake.api").joinpath("parameters.txt").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, example, description = line.split(" | ", 2)
            name, _, path = name.partition("@")
            found[name, path] = Parameter(example, description)
    return found


def find_parameter(path: str, name: str) -> Parameter:
    """Return the entry of a parameter with the longest matching path.

    Raises:
        KeyError: ``parameters.txt`` does not have the name.
    """
    table = load_parameters()
    paths = [place for known, place in table if known == name and path.startswith(place)]
    if not paths:
        raise KeyError(f"parameters.txt has no {name} (of {path})")
    return table[name, max(paths, key=len)]


def describe_parameter(path: str, name: str, schema: Schema, *, required: bool) -> Schema:
    """Return the OpenAPI description of a query parameter.

    The example of an optional parameter is in its schema: outside of it, Swagger UI would fill it
    in, and a request with every filter finds nothing.
    """
    known = find_parameter(path, name)
    example = known.read_example(schema)
    shown: Schema = {
        "name": name,
        "in": "query",
        "required": required,
        "description": known.description,
        "schema": schema | {"examples": [example]},
    }
    return shown | {"example": example} if required else shown


def describe_property(path: str, name: str, schema: Schema) -> Schema:
    """Return the schema of a body's field with description and example.

    It has no default: generated clients would require a value.
    """
    known = find_parameter(path, name)
    schema = {key: value for key, value in schema.items() if key != "default"}
    return schema | {"description": known.description, "examples": [known.read_example(schema)]}
