"""The API reference: the OpenAPI 3.1 document of all routes, and Swagger UI to read and try it.

Parameters come from the structs that convert them, responses from the structs that are encoded, so
the document cannot differ from what the program does. Swagger UI is served from an installed
package; nothing is loaded from other hosts.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_origin, get_type_hints

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from tonlake.api import tables
from tonlake.api.explorer.frame import HEADERS, fill_template, read_theme
from tonlake.api.request.call import ApiRequest, Query, converters_of
from tonlake.api.request.table_format import MEDIA_TYPES, has_list
from tonlake.api.scan.frames import SCAN_TYPES
from tonlake.api.scan.query import Scan
from tonlake.api.scan.routes import PATH
from tonlake.api.stream.event import FINALITIES, TYPES, StreamQuery
from tonlake.api.stream.routes import PREFIX
from tonlake.api.v2.routes import METHODS, Method
from tonlake.api.v3.routes import described as v3_routes

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_OTHERS = [media for media in MEDIA_TYPES.values() if media != _JSON]
_FORMS = {"type": "string", "enum": [*MEDIA_TYPES]}
_FIXED = msgspec.json.decode(files("tonlake.api").joinpath("openapi.json").read_bytes())
"""What no code states: tags, shared parameters, schemas of bodies without a struct, texts."""

_FIXED["rpc"]["properties"]["method"]["enum"] = sorted(METHODS)
_FIXED["statement"]["properties"]["format"] = _FORMS
_TEXTS, _STRING, _OBJECT = _FIXED["texts"], _FIXED["string"], _FIXED["object"]


class ParameterExample(NamedTuple):
    """An example of a parameter as text, and its description."""

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
def load_parameters() -> Mapping[tuple[str, str], ParameterExample]:
    """Return the parameters by name and path ("" for any path), from ``parameters.txt``."""
    text = files("tonlake.api").joinpath("parameters.txt").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, *shown = line.split(" | ", 2)
            name, _, path = name.partition("@")
            found[name, path] = ParameterExample(*shown)
    return found


def _find_parameter(path: str, name: str) -> ParameterExample:
    """Return the entry of a parameter with the longest matching path."""
    table = load_parameters()
    paths = [place for known, place in table if known == name and path.startswith(place)]
    if not paths:
        raise KeyError(f"parameters.txt has no {name} (of {path})")
    return table[name, max(paths, key=len)]


def _describe_parameter(path: str, name: str, schema: Schema, *, required: bool = False) -> Schema:
    """Return the description of a query parameter; Swagger UI fills in no optional one."""
    known = _find_parameter(path, name)
    example = known.read_example(schema)
    shown: Schema = {
        "name": name,
        "in": "query",
        "required": required,
        "description": known.description,
        "schema": schema | {"examples": [example]},
    }
    return shown | {"example": example} if required else shown


class _Types:
    """Collects the types of all operations and describes them at once, resolving equal names."""

    def __init__(self) -> None:
        self._kinds: list[Any] = []
        self._shown: list[Schema] = []
        self._bodies: dict[str, str] = {}

    def refer(self, kind: Any, body_of: str = "") -> Schema:  # noqa: ANN401 - any type
        """Return a schema, empty until ``describe``; ``body_of`` is the path of a body."""
        self._kinds.append(kind)
        self._shown.append({})
        if body_of:
            self._bodies[kind.__name__] = body_of
        return self._shown[-1]

    def describe(self) -> Schema:
        """Return the schemas of all structs by name; pre-encoded text may be any JSON."""
        found, named = msgspec.json.schema_components(
            self._kinds, ref_template=_REF, schema_hook=lambda _kind: {"description": "Any JSON."}
        )
        for shown, schema in zip(self._shown, found, strict=True):
            shown.update(schema)
        for name, path in self._bodies.items():
            for key, field in named[name]["properties"].items():
                # Generated clients would require a value for a field with a default.
                field.pop("default", None)
                known = _find_parameter(path, key)
                field["description"] = known.description
                field["examples"] = [known.read_example(field)]
        return named


def describe_api() -> Schema:
    """Return the OpenAPI document."""
    types = _Types()
    paths: dict[str, Any] = {}
    for route in v3_routes:
        for path in route.paths:
            item = paths.setdefault(f"/api/v3{path}", {})
            item.update(_describe_route(path, route, types))
    paths |= {f"/api/v2/{name}": dict(_describe_method(name, METHODS[name])) for name in METHODS}
    paths |= _describe_others()
    document: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "tonlake",
            "version": version("tonlake"),
            "description": "The TON Center API, versions 2 and 3, over a lake of Parquet files.",
        },
        "servers": [{"url": "/"}],
        "tags": _FIXED["tags"],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**_FIXED["errors"], **types.describe()},
            "parameters": _FIXED["parameters"],
        },
    }
    whole: Schema = _complete_arrays(document)
    return whole


def _complete_arrays(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON with empty ``items`` in arrays of anything, which generators refuse without."""
    if isinstance(value, list):
        return [_complete_arrays(item) for item in value]
    if not isinstance(value, dict):
        return value
    whole = {key: _complete_arrays(item) for key, item in value.items()}
    if whole.get("type") == "array" and not {"items", "prefixItems"} & whole.keys():
        whole["items"] = {}
    return whole


def _name_operation(api: str, verb: str, path: str) -> str:
    """Return the id of an operation, which generated clients use as a function name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path.strip("/").replace("/", "_"))
    return f"{api}_{verb}_{words}".lower()


def _operate(name: str, tag: str, summary: str, responses: Schema, **others: object) -> Schema:
    """Return an operation."""
    shown = {"operationId": name, "tags": [tag], "summary": summary, "responses": responses}
    return shown | others


def _write_body(schema: Schema, *, required: bool = True) -> Schema:
    return {"required": required, "content": {_JSON: {"schema": schema}}}


def _list_responses(schema: Schema, error: str = "Error", media: str = _JSON) -> Schema:
    """Return the responses of an operation."""
    refused = {_JSON: {"schema": {"$ref": _REF.format(name=error)}}}
    described = {"200": {"description": "Success.", "content": {media: {"schema": schema}}}}
    if error == "ErrorV2":
        described["500"] = {"description": _TEXTS["refused"], "content": refused}
    return described | {"default": {"description": "Error.", "content": refused}}


def _describe_route(path: str, route: HTTPRouteHandler, types: _Types) -> Schema:
    """Return the operations of one route by HTTP method.

    The other media types of a list, selected by ``Accept``, are in an extension: as ``content``
    they would make generated clients parse JSON as any of them.
    """
    answer, where = route.opt.get("answer"), f"/api/v3{path}"
    kind = route.opt.get("answers") if answer is None else get_type_hints(answer)["return"]
    described: Schema = {}
    for verb in sorted(route.http_methods - {"HEAD"}):
        responses = _list_responses({} if kind is None else types.refer(kind))
        has_rows = get_origin(kind) is list or (isinstance(kind, type) and has_list(kind))
        if answer is not None and has_rows:
            responses["200"]["description"] = f"Success. By Accept also as {', '.join(_OTHERS)}."
            responses["200"]["x-table-media-types"] = _OTHERS
        shared = [{"$ref": f"#/components/parameters/{name}"} for name in _FIXED["parameters"]]
        operation = _operate(
            _name_operation("v3", verb, path), "v3", _first_line(answer or route.fn), responses
        )
        operation["parameters"] = [*_list_parameters(where, route.opt.get("query")), *shared]
        if verb == "POST":
            body = route.opt.get("body")
            content = _OBJECT if body is None else types.refer(body, where)
            operation["requestBody"] = _write_body(content)
        described[verb.lower()] = operation
    return described


def _describe_method(name: str, method: Method) -> Iterator[tuple[str, Schema]]:
    """Yield the operations of one v2 method by HTTP method."""
    listed = _list_parameters(f"/api/v2/{name}", method.params)
    needed = [item["name"] for item in listed if item["required"]]
    body = {"type": "object", "properties": _list_properties(listed), "required": needed}
    summary = _first_line(method.answer) or name
    parts: dict[str, Schema] = {
        "get": {"parameters": listed},
        "post": {"requestBody": _write_body(body, required=bool(needed))},
    }
    for verb, part in parts.items():
        if verb == "post" or not method.post_only:
            responses = _list_responses(_FIXED["result"], "ErrorV2")
            yield (
                verb,
                _operate(_name_operation("v2", verb, name), "v2", summary, responses, **part),
            )


def _list_parameters(path: str, kind: type[Query] | None) -> list[Schema]:
    """Return the query parameters of a struct; lists are repeated parameters."""
    if kind is None:
        return []
    required = {item.name for item in msgspec.structs.fields(kind) if item.required}
    required.update(kind.mandatory)
    limits = {"types": [*TYPES], "min_finality": [*FINALITIES]} if kind is StreamQuery else {}
    shown = []
    for name, converter in converters_of(kind).items():
        schema = converter.schema | ({"enum": limits[name]} if name in limits else {})
        schema = {"type": "array", "items": schema} if converter.many else schema
        shown.append(_describe_parameter(path, name, schema, required=name in required))
    return shown


def _list_properties(parameters: list[Schema]) -> Schema:
    """Return parameters as the fields of a body."""
    return {
        item["name"]: item["schema"] | {"description": item["description"]} for item in parameters
    }


def _first_line(function: Any) -> str:  # noqa: ANN401 - a function
    return (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")


class _Fixed(NamedTuple):
    """An operation of ``openapi.json``: its id, tag, summary, successful response and text.

    The response is text or a schema of that file; "" if there is none.
    """

    name: str
    tag: str
    summary: str
    answer: str
    media: str = _JSON
    text: str = ""


def _describe_others() -> Schema:
    """Return the operations that ``openapi.json`` lists, with what the code knows of each."""
    known, paths = _list_inputs(), {}
    for path, verbs in _FIXED["operations"].items():
        paths[path] = dict(verbs)
        for verb, listed in verbs.items():
            fixed = msgspec.convert(listed, _Fixed)
            error = "ErrorV2" if fixed.tag == "v2" else "Error"
            responses = {"default": {"description": "Not a WebSocket request."}}
            if fixed.answer:
                responses = _list_responses(_FIXED[fixed.answer], error, fixed.media)
            operation = _operate(fixed.name, fixed.tag, fixed.summary, responses)
            if fixed.text:
                text = _TEXTS[fixed.text].replace("{formats}", ", ".join(_OTHERS))
                operation["description"] = text
            paths[path][verb] = operation | known.get(fixed.name, {})
    # Generators of clients do not know the other types.
    usual, *others = SCAN_TYPES.values()
    text = f"Success: {usual}, or by Accept {', '.join(others)}."
    paths[PATH]["post"]["responses"]["200"]["description"] = text
    return paths


def _list_inputs() -> dict[str, Schema]:
    """Return parameters or body of the operations that ``openapi.json`` lists, by their id."""
    page, filters = f"{tables.PREFIX}/{{name}}", _list_parameters(f"{PREFIX}/sse", StreamQuery)
    subscription = {"type": "object", "properties": _list_properties(filters)}
    number = {"type": "integer", "minimum": 0}
    window = {"limit": number, "offset": number, "sort": _STRING, "format": _FORMS}
    name = _describe_parameter(page, "name", _STRING, required=True) | {"in": "path"}
    rows = [name, *(_describe_parameter(page, *pair) for pair in window.items())]
    query = _describe_parameter("/sql", "query", _STRING, required=True)
    _refs, named = msgspec.json.schema_components([Scan], ref_template="{name}")
    named["Scan"]["properties"]["tables"]["additionalProperties"] = named["TableScan"]
    scan = named["Scan"] | {"description": _TEXTS["scan"]}
    return {
        "v2_post_json_rpc": {"requestBody": _write_body(_FIXED["rpc"])},
        "stream_get_sse": {"parameters": filters},
        "stream_post_sse": {"requestBody": _write_body(subscription)},
        "sql_get": {"parameters": [query, _describe_parameter("/sql", "format", _FORMS)]},
        "sql_post": {"requestBody": _write_body(_FIXED["statement"])},
        "scan_post": {"requestBody": _write_body(scan)},
        "table_get": {"parameters": rows},
    }


_DAY = {"Cache-Control": "max-age=86400"}

_POLICY = "Content-Security-Policy"
_HEADERS = {**HEADERS, _POLICY: f"{HEADERS[_POLICY]}; img-src 'self' data:"}
"""The headers of the explorer's pages; Swagger UI's style contains images."""


@cache
def write_description() -> bytes:
    """Return the OpenAPI document as JSON."""
    return msgspec.json.encode(describe_api())


@cache
def _read_asset(name: str) -> bytes:
    """Return a file of Swagger UI."""
    spec = find_spec("swagger_ui")
    if spec is None or not spec.submodule_search_locations:
        return b""
    return (Path(spec.submodule_search_locations[0]) / "static" / name).read_bytes()


@get("/docs", sync_to_thread=False)
def answer_docs(request: ApiRequest) -> Response[str]:
    """Return the API reference in the theme of the explorer."""
    with_sql = request.app.state.settings.sql.enabled
    values = {"theme": read_theme(request), "with_sql": with_sql, "here": "/docs"}
    return Response(fill_template("docs.html", values), media_type="text/html", headers=_HEADERS)


@get("/openapi.json", sync_to_thread=True)
def answer_openapi() -> Response[bytes]:
    """Return the OpenAPI document."""
    return Response(write_description(), media_type="application/json")


_FILES = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
"""Media types of the files of Swagger UI that the page uses."""


def _make_route(name: str) -> HTTPRouteHandler:
    @get(f"/docs/{name}", sync_to_thread=True)
    def answer_file() -> Response[bytes]:
        """Return a file of the API reference."""
        return Response(_read_asset(name), media_type=_FILES[name], headers=_DAY)

    return answer_file


@get("/api/v3/index.html", status_code=301, sync_to_thread=False)
def redirect_to_docs() -> Redirect:
    """Redirect from the path that TON Center's reference has."""
    return Redirect("/docs", status_code=301)


@get(["/api/v2/openapi.json", "/api/v3/doc.json"], status_code=301, sync_to_thread=False)
def redirect_to_openapi() -> Redirect:
    """Redirect from the paths that TON Center's documents have, which generators of code ask."""
    return Redirect("/openapi.json", status_code=301)


routes = [answer_docs, answer_openapi, redirect_to_docs, redirect_to_openapi]
routes += map(_make_route, _FILES)
