"""Describes the operations outside of v2 and v3 for OpenAPI: streams, SQL, monitoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.parameter import describe_parameter
from tonlake.api.request.params import converters_of
from tonlake.api.request.table_format import CSV, MEDIA_TYPES
from tonlake.api.scan.frames import SCAN_TYPES
from tonlake.api.scan.query import Scan
from tonlake.api.scan.routes import PATH
from tonlake.api.stream.event import FINALITIES, TYPES
from tonlake.api.stream.routes import PREFIX
from tonlake.api.stream.subscription import StreamQuery
from tonlake.api.tables import routes as tables

if TYPE_CHECKING:
    from tonlake.api.request.params import Converter

Schema = dict[str, Any]

_JSON, _TEXT = "application/json", "text/plain"
_ERROR = {"$ref": "#/components/schemas/Error"}
_STRING = {"type": "string"}
TAGS = [
    {"name": "v3", "description": "TON Center API v3: indexed chain, tokens, traces, actions"},
    {"name": "v2", "description": "TON Center API v2: blocks, accounts, get-methods, sending"},
    {"name": "streams", "description": "Events of new blocks: server-sent events, WebSocket"},
    {"name": "scan", "description": "Rows of a table in chain order, for indexers"},
    {"name": "sql", "description": "SQL over the lake, if the setting [sql] enabled is set"},
    {"name": "tables", "description": "User-defined tables: results of statements, refreshed"},
    {"name": "service", "description": "Health and monitoring"},
]
"""Tags of operations, in the order in which a reference shows them."""

_STREAM = (
    "Events of each commit that match the filters, until the client disconnects. Each event is a"
    " line `data:` with a JSON object, after a line `id:`; the header `Last-Event-ID` continues"
    " after one. Undone blocks are reported as `blocks_undone`."
)
_SOCKET = (
    'A WebSocket (status 101). Send `{"operation": "subscribe", …}` with the filters of'
    ' the server-sent events as lists, `{"operation": "unsubscribe"}` or'
    ' `{"operation": "ping"}`; events are JSON objects.'
)
_SQL = (
    "Run one SQL statement (DuckDB) in a sandboxed process. Off by default: setting"
    " `[sql] enabled`. The response is JSON unless `format` or `Accept` selects"
    f" {', '.join(media for media in MEDIA_TYPES.values() if media != _JSON)}."
)
_SCAN = (
    "Rows of a table, or of several, by masterchain block, in batches. Each batch has a cursor"
    " from which a later scan continues: in the custom metadata of an Arrow record batch, in a line"
    " `@batch` of NDJSON. With `follow` the response continues with new blocks."
)
_TABLE = (
    "A page of a user-defined table (`tonlake table add`). Filters are `column=value`, `column.ne`,"
    " `column.lt`, `column.lte`, `column.gt` and `column.gte`; bytes are hex."
)
_ROWS = {
    "type": "object",
    "properties": {
        "columns": {"type": "array", "items": {"type": "object"}},
        "rows": {"type": "array", "items": {"type": "array", "items": {}}},
        "row_count": {"type": "integer"},
        "complete": {"type": "boolean"},
    },
    "required": ["columns", "rows", "row_count", "complete"],
}
_STATEMENT = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "One SQL statement (DuckDB).",
            "examples": ["select count(*) as n from blocks"],
        },
        "format": {"type": "string", "enum": [*MEDIA_TYPES]},
    },
    "required": ["query"],
}


def describe_service() -> dict[str, Schema]:
    """Return the operations by path and HTTP method."""
    return {
        **_describe_streams(),
        "/sql": _describe_sql(),
        PATH: _describe_scan(),
        **_describe_tables(),
        "/healthz": _describe_check("healthz", "Check that the process responds", _TEXT),
        "/readyz": _describe_check("readyz", "Show the snapshot served and its lag; 503 if late"),
        "/version": _describe_check("version", "Show name and version of the program"),
        "/metrics": _describe_check("metrics", "Return metrics in Prometheus text format", _TEXT),
    }


def _describe_streams() -> dict[str, Schema]:
    path = f"{PREFIX}/sse"
    limits = {"types": [*TYPES], "min_finality": [*FINALITIES]}
    shown = {
        name: describe_parameter(path, name, _limit(converter, limits.get(name)), required=False)
        for name, converter in converters_of(StreamQuery).items()
    }
    body = {
        "type": "object",
        "properties": {
            name: each["schema"] | {"description": each["description"]}
            for name, each in shown.items()
        },
    }
    answers = _list_answers("text/event-stream", _STRING)
    common = {"tags": ["streams"], "description": _STREAM, "responses": answers}
    return {
        path: {
            "get": common
            | {
                "operationId": "stream_get_sse",
                "summary": "Follow events (server-sent events)",
                "parameters": [*shown.values()],
            },
            "post": common
            | {
                "operationId": "stream_post_sse",
                "summary": "Follow events; filters as JSON",
                "requestBody": {"required": True, "content": {_JSON: {"schema": body}}},
            },
        },
        f"{PREFIX}/ws": {
            "get": {
                "operationId": "stream_get_ws",
                "tags": ["streams"],
                "summary": "Follow events (WebSocket)",
                "description": _SOCKET,
                "responses": {"default": {"description": "Not a WebSocket request."}},
            }
        },
    }


def _limit(converter: Converter, words: list[str] | None) -> Schema:
    schema = converter.schema if words is None else converter.schema | {"enum": words}
    return {"type": "array", "items": schema} if converter.many else schema


def _describe_sql() -> Schema:
    forms = {"type": "string", "enum": [*MEDIA_TYPES]}
    common = {"tags": ["sql"], "description": _SQL, "responses": _list_answers(_JSON, _ROWS)}
    return {
        "get": common
        | {
            "operationId": "sql_get",
            "summary": "Run a SQL statement",
            "parameters": [
                describe_parameter("/sql", "query", _STRING, required=True),
                describe_parameter("/sql", "format", forms, required=False),
            ],
        },
        "post": common
        | {
            "operationId": "sql_post",
            "summary": "Run a SQL statement in the body",
            "requestBody": {"required": True, "content": {_JSON: {"schema": _STATEMENT}}},
        },
    }


def _describe_scan() -> Schema:
    _refs, named = msgspec.json.schema_components([Scan], ref_template="{name}")
    named["Scan"]["properties"]["tables"]["additionalProperties"] = named["TableScan"]
    # Generators of clients do not know the other types.
    answers = _list_answers(SCAN_TYPES[CSV], _STRING)
    usual, *others = SCAN_TYPES.values()
    text = f"Success: {usual}, or by Accept {', '.join(others)}."
    answers["200"]["description"] = text
    return {
        "post": {
            "operationId": "scan_post",
            "tags": ["scan"],
            "summary": "Stream rows of a table in chain order",
            "description": _SCAN,
            "requestBody": {
                "required": True,
                "content": {_JSON: {"schema": named["Scan"] | {"description": _SCAN}}},
            },
            "responses": answers,
        }
    }


def _describe_tables() -> dict[str, Schema]:
    page = f"{tables.PREFIX}/{{name}}"
    number, forms = {"type": "integer", "minimum": 0}, {"type": "string", "enum": [*MEDIA_TYPES]}
    schemas: Schema = {"limit": number, "offset": number, "sort": _STRING, "format": forms}
    name = describe_parameter(page, "name", _STRING, required=True) | {"in": "path"}
    chosen = [
        describe_parameter(page, each, schema, required=False) for each, schema in schemas.items()
    ]
    common = {"tags": ["tables"]}
    return {
        tables.PREFIX: {
            "get": common
            | {
                "operationId": "tables_get",
                "summary": "List user-defined tables: statement, columns, rows, newest commit",
                "responses": _list_answers(_JSON, {"type": "object"}),
            }
        },
        page: {
            "get": common
            | {
                "operationId": "table_get",
                "summary": "Return a page of a user-defined table",
                "description": _TABLE,
                "parameters": [name, *chosen],
                "responses": _list_answers(_JSON, _ROWS),
            }
        },
    }


def _describe_check(name: str, summary: str, media: str = _JSON) -> Schema:
    return {
        "get": {
            "operationId": f"service_get_{name}",
            "tags": ["service"],
            "summary": summary,
            "responses": _list_answers(media, _STRING if media == _TEXT else {"type": "object"}),
        }
    }


def _list_answers(media: str, schema: Schema) -> Schema:
    return {
        "200": {"description": "Success.", "content": {media: {"schema": schema}}},
        "default": {"description": "Error.", "content": {_JSON: {"schema": _ERROR}}},
    }
