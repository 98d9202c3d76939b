"""Generates the OpenAPI 3.1 document of both API versions from the code of the routes.

Parameters come from the structs that convert them, responses from the structs that are encoded, so
the document cannot differ from what the program does.
"""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, get_origin

import msgspec

from tonlake.api.openapi_form import complete_arrays, name_operation
from tonlake.api.openapi_service import TAGS, describe_service
from tonlake.api.parameter import describe_parameter, describe_property
from tonlake.api.request.params import converters_of
from tonlake.api.request.table_format import MEDIA_TYPES, has_list
from tonlake.api.v2.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from litestar.handlers import HTTPRouteHandler

    from tonlake.api.request.params import Query
    from tonlake.api.v2.methods import Method

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_ERROR_3 = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_ERROR_2 = {
    "type": "object",
    "properties": {
        "ok": {"const": False},
        "error": {"type": "string"},
        "code": {"type": "integer"},
        "@extra": {"type": "string"},
    },
    "required": ["ok", "error", "code"],
}
_RPC = {
    "type": "object",
    "properties": {
        "jsonrpc": {"type": "string"},
        "id": {},
        "method": {"type": "string", "enum": sorted(METHODS)},
        "params": {"type": "object"},
    },
    "required": ["method"],
}
TABLES = "x-table-media-types"
"""Extension with the other media types of a list, selected by ``Accept``.

As ``content`` of the response they would make generated clients parse JSON as any of them.
"""
_TRUE = {"type": "string", "examples": ["true"]}
_SHARED = {
    "snapshot": (
        "query",
        {
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "maximum": (1 << 31) - 1,
            "examples": [1],
        },
        "Snapshot (commit number) to read; default: the newest.",
    ),
    # Invalid values of these are ignored, as by TON Center: any text is allowed.
    "X-No-Address-Book": ("header", _TRUE, "true: return an empty address book."),
    "X-No-Metadata": ("header", _TRUE, "true: return empty metadata."),
    "X-Timeout": (
        "header",
        {"type": "string", "examples": ["5000"]},
        "Query timeout in milliseconds.",
    ),
}


class _Types:
    """Collects the types of all operations and describes them at once, resolving equal names."""

    def __init__(self) -> None:
        self._kinds: list[Any] = []
        self._shown: list[Schema] = []
        self._bodies: dict[str, str] = {}

    def refer(self, kind: Any, body_of: str = "") -> Schema:  # noqa: ANN401 - any type
        """Return the schema of a type, still empty until ``describe``.

        ``body_of`` is the path of a request body: its fields are described as parameters.
        """
        self._kinds.append(kind)
        self._shown.append({})
        if body_of:
            self._bodies[kind.__name__] = body_of
        return self._shown[-1]

    def describe(self) -> Schema:
        """Return the schemas of all structs by name."""
        found, named = msgspec.json.schema_components(
            self._kinds, ref_template=_REF, schema_hook=_describe_anything
        )
        for shown, schema in zip(self._shown, found, strict=True):
            shown.update(schema)
        for name, path in self._bodies.items():
            fields = named[name]["properties"]
            fields |= {key: describe_property(path, key, field) for key, field in fields.items()}
        return named


def describe_api(routes: Mapping[str, Iterable[HTTPRouteHandler]]) -> Schema:
    """Return the OpenAPI document; ``routes`` are those below ``/api/v3``."""
    types = _Types()
    paths: dict[str, Any] = {}
    for api, listed in routes.items():
        for route in listed:
            for path in route.paths:
                item = paths.setdefault(f"/api/{api}{path}", {})
                item.update(_describe_route(api, path, route, types))
    for name, method in METHODS.items():
        paths[f"/api/v2/{name}"] = dict(_describe_method(name, method))
    paths["/api/v2/jsonRPC"] = {"post": _describe_rpc()}
    paths |= describe_service()
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "tonlake",
            "version": version("tonlake"),
            "description": "The TON Center API, versions 2 and 3, over a lake of Parquet files.",
        },
        "servers": [{"url": "/"}],
        "tags": TAGS,
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Error": _ERROR_3, "ErrorV2": _ERROR_2, **types.describe()},
            "parameters": {
                name: {"name": name, "in": place, "schema": schema, "description": text}
                for name, (place, schema, text) in _SHARED.items()
            },
        },
    }
    complete_arrays(document)
    return document


def _describe_route(api: str, path: str, route: HTTPRouteHandler, types: _Types) -> Schema:
    """Return the operations of one route by HTTP method."""
    kind: type[Query] | None = route.opt.get("query")
    answer = route.opt.get("answer")
    shown = answer or route.fn
    described: Schema = {}
    for verb in sorted(route.http_methods - {"HEAD"}):
        operation: Schema = {
            "operationId": name_operation(api, verb, path),
            "tags": [api],
            "summary": _first_line(shown),
            "parameters": [*_list_parameters(f"/api/{api}{path}", kind), *_refer_shared()],
            "responses": _list_responses(
                _describe_answer(answer, route, types), "Error", tables=_gives_rows(answer)
            ),
        }
        if verb == "POST":
            body = route.opt.get("body")
            content = {"type": "object"} if body is None else types.refer(body, f"/api/{api}{path}")
            operation["requestBody"] = _write_body(content)
        described[verb.lower()] = operation
    return described


def _describe_method(name: str, method: Method) -> Iterator[tuple[str, Schema]]:
    """Yield the operations of one v2 method by HTTP method."""
    result = {
        "type": "object",
        "properties": {"ok": {"const": True}, "result": {}, "@extra": {"type": "string"}},
        "required": ["ok", "result", "@extra"],
    }
    common = {
        "tags": ["v2"],
        "summary": _first_line(method.answer) or name,
        "responses": _list_responses(result, "ErrorV2"),
    }
    path = f"/api/v2/{name}"
    listed = _list_parameters(path, method.params)
    needed = [item["name"] for item in listed if item["required"]]
    if not method.post_only:
        yield (
            "get",
            {**common, "operationId": name_operation("v2", "get", name), "parameters": listed},
        )
    body = {
        "type": "object",
        "properties": {
            item["name"]: item["schema"] | {"description": item["description"]} for item in listed
        },
        "required": needed,
    }
    yield (
        "post",
        {
            **common,
            "operationId": name_operation("v2", "post", name),
            "requestBody": _write_body(body, required=bool(needed)),
        },
    )


def _describe_rpc() -> Schema:
    return {
        "operationId": "v2_post_json_rpc",
        "tags": ["v2"],
        "summary": "Call any method by name.",
        "requestBody": _write_body(_RPC),
        "responses": _list_responses({"type": "object"}, "ErrorV2"),
    }


def _write_body(schema: Schema, *, required: bool = True) -> Schema:
    return {"required": required, "content": {_JSON: {"schema": schema}}}


def _list_responses(schema: Schema, error: str, *, tables: bool = False) -> Schema:
    """Return the responses of an operation; with ``tables``, also the other media types."""
    refused = {"schema": {"$ref": _REF.format(name=error)}}
    content: Schema = {_JSON: {"schema": schema}}
    described: Schema = {"200": {"description": "Success.", "content": content}}
    if tables:
        others = [media for media in MEDIA_TYPES.values() if media != _JSON]
        described["200"]["description"] = f"Success. By Accept also as {', '.join(others)}."
        described["200"][TABLES] = others
    if error == "ErrorV2":
        text = "Refused as by a lite server (LITE_SERVER_...): clients match on the error."
        described["500"] = {"description": text, "content": {_JSON: refused}}
    return described | {
        "default": {"description": "Error.", "content": {_JSON: refused}},
    }


def _list_parameters(path: str, kind: type[Query] | None) -> list[Schema]:
    """Return the query parameters of a struct; lists are repeated parameters."""
    if kind is None:
        return []
    required = {item.name for item in msgspec.structs.fields(kind) if item.required}
    return [
        describe_parameter(
            path,
            name,
            {"type": "array", "items": converter.schema} if converter.many else converter.schema,
            required=name in required,
        )
        for name, converter in converters_of(kind).items()
    ]


def _refer_shared() -> list[Schema]:
    return [{"$ref": f"#/components/parameters/{name}"} for name in _SHARED]


def _describe_answer(answer: Any, route: HTTPRouteHandler, types: _Types) -> Schema:  # noqa: ANN401
    """Return the schema of an operation's response, from its annotation or its route's option."""
    kind = route.opt.get("answers") if answer is None else _find_return_type(answer)
    return {} if kind is None else types.refer(kind)


def _gives_rows(answer: Any) -> bool:  # noqa: ANN401 - a function, or None
    """Return whether a response contains a list, which is also available as a table."""
    kind = None if answer is None else _find_return_type(answer)
    return get_origin(kind) is list or (isinstance(kind, type) and has_list(kind))


def _find_return_type(answer: Any) -> Any:  # noqa: ANN401 - any annotation
    """Evaluate a return annotation, whose names may be imported only for type checking."""
    names: dict[str, Any] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("tonlake.api.v3."):
            names.update(vars(module))
    names.update(answer.__globals__)
    return eval(answer.__annotations__["return"], names)  # noqa: S307 - trusted source code


def _first_line(function: Any) -> str:  # noqa: ANN401 - a function
    return (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")


def _describe_anything(_kind: type) -> Schema:
    """Describe values that may be any JSON: decoded bodies and pre-encoded text."""
    return {"description": "Any JSON."}
