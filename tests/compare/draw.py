"""Draws requests over all routes of a service, from its OpenAPI document and a lake's rows.

The Parquet files are read directly, so that this uses none of the code under test.
"""

import base64
import json
from binascii import crc_hqx
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import duckdb

from tests.compare.ask import Request
from tests.compare.place import ALONE, MODIFIERS, TOGETHER, WORDS, WRONG, find_places

V2, V3, RPC = "/api/v2/", "/api/v3/", "/api/v2/jsonRPC"
TABLES = ("text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet")
FULL = 30
"""Requests with drawn parameters for each GET route; other routes have a share of it."""

ROWS = 60
"""Rows of each table that values are taken from."""

NOT_TABLES = {"_log", "lookups"}
Row = dict[str, Any]

METHODS = (
    *("seqno", "get_public_key", "get_jetton_data", "get_wallet_data", "get_nft_data"),
    *("get_collection_data", "active_election_id", "get_sale_data", "get_multisig_data"),
    *("get_order_data", "get_vesting_data", "get_subwallet_id", "nothing", "85143", "dnsresolve"),
    *("get_wallet_address", "get_nft_address_by_index", "royalty_params"),
)
CELL = "te6cckEBAQEAAgAAAEysuc0="
STACKS: tuple[list[list[str]], ...] = (
    *([], [], []),
    *([["num", "0x1"]], [["num", "0x1"], ["tvm.Cell", CELL]], [["x"]]),
)
TREE = {"data": {"b64": "AA==", "len": 8}, "refs": [{"data": {"b64": "gA==", "len": 1}}]}
"""A cell as the ``…Simple`` methods of version 2 take it."""

_TEXT: Row = {"type": "string"}
BODIES: dict[str, dict[str, Row]] = {
    "/api/v3/decode": {"opcodes": _TEXT, "bodies": _TEXT},
    "/api/v3/message": {"boc": _TEXT},
    "/api/v3/estimateFee": dict.fromkeys(("address", "body", "init_code", "init_data"), _TEXT),
    "/api/v3/runGetMethod": {"address": _TEXT, "method": _TEXT, "stack": {"type": "array"}},
}
"""What the routes take whose document does not say it."""

SERVICE = (
    *("/healthcheck", "/healthz", "/readyz", "/version", "/openapi.json", "/docs", "/metrics"),
    *("/docs/swagger-ui.css", "/docs/nothing", "/nothing", "/api", "/api/v2", "/api/v2/nothing"),
    *("/api/v3", "/api/v3/nothing", "/api/v3/blocks/", "/api/v3/%00", "/api/v4/blocks", "//"),
    *("/api/v3/index.html", "/api/v3/doc.json", "/explorer/x.css", "/sql"),
    *("/api/streaming/v2/sse?types=x", "/api/streaming/v2/sse?last_event_id=x"),
    *("/", "/lake", "/blocks", "/blocks/rows", "/search", "/search?q=", "/search?q=zz"),
)
PAGES = {
    "/account/{}": "account",
    "/account/{}?show=jettons": "account",
    "/account/{}?offset=20": "account",
    "/jetton/{}": "jetton_master",
    "/nft/{}": "item_address",
    "/transaction/{}": "hash",
    "/trace/{}": "trace_id",
    "/search?q={}": "tx_hash",
    "/blocks?before={}": "mc_seqno",
    "/blocks/rows?before={}": "mc_seqno",
}
"""Pages of the explorer, and the parameter whose values they take."""

STATEMENTS = (
    "select seqno, shard, gen_utime from blocks order by all limit 20",
    "select hash, lt, boc from transactions order by lt, hash limit 5",
    "select workchain, sum(total_fees) as fees from transactions group by all order by all",
    "select type, count(*) as n from actions group by all order by all",
    "select kind, min(value), max(value) from messages group by all order by all",
    *("select 1 as a; select 2", "selec", "drop table blocks", "select * from nothing", ""),
)
FORMATS = ("json", "csv", "arrow", "parquet", "html", "x")
OTHER_METHODS = ("PUT", "DELETE", "OPTIONS", "PATCH", "POST", "HEAD")
TARGETS = ("/", "/api/v2/getMasterchainInfo", "/api/v3/blocks", "/sql", "/docs", RPC)
CALLS: tuple[Row, ...] = (
    {"method": "nothing", "id": 1, "jsonrpc": "2.0", "params": {}},
    *({"method": "getMasterchainInfo", "params": []}, {"method": 5}, {}),
)


def read_rows(lake_dir: Path, seed: int) -> dict[str, list[Row]]:
    """Return some rows of each table, the same for the same lake and seed."""
    tables = {}
    with duckdb.connect() as connection:
        for folder in sorted(lake_dir.iterdir()):
            if folder.name in NOT_TABLES or not next(folder.rglob("*.parquet"), None):
                continue
            rows = connection.execute(
                "select * from read_parquet($files, union_by_name=true) as held"
                " order by md5($seed || held::varchar), held limit $rows",
                {"files": f"{folder}/**/*.parquet", "seed": str(seed), "rows": ROWS},
            )
            names = [column for column, *_ in rows.description]
            tables[folder.name] = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    return tables


class Draw:
    """The requests of one seed."""

    def __init__(
        self, tables: dict[str, list[Row]], description: Row, seed: int, draws: int = FULL
    ) -> None:
        """Take rows, the OpenAPI document of a service, and how many requests a route gets."""
        self._tables, self._description, self._draws = tables, description, draws
        self._random = Random(seed)  # noqa: S311 - the same requests in every run
        self._rows: dict[str, Row] = {}

    def requests(self) -> list[Request]:
        """Return the requests; some of them twice, so that cached responses are compared, too."""
        found = [*self._list_described(), *self._list_pages(), *self._list_fixed()]
        again = [one for one in found if one.method == "GET" and "/docs" not in one.route]
        return found + self._random.sample(again, len(again) // 12)

    def _list_described(self) -> Iterator[Request]:
        for path, operations in sorted(self._description["paths"].items()):
            if path.startswith("/api/streaming/"):  # has no end
                continue
            if "get" in operations and "{" not in path:
                yield from self._list_gets(path, self._parameters_of(operations["get"]))
            if "post" in operations and path != RPC:
                yield from self._list_posts(path, operations["post"])

    def _resolve(self, found: Row) -> Row:
        while "$ref" in found:
            where: Any = self._description
            for name in found["$ref"].split("/")[1:]:
                where = where[name]
            found = where
        return found

    def _parameters_of(self, operation: Row) -> dict[str, Row]:
        """Return the schemas of the query parameters."""
        found = [self._resolve(one) for one in operation.get("parameters", [])]
        return {
            one["name"]: one["schema"] | {"required": one.get("required", False)}
            for one in found
            if one.get("in", "query") == "query" and one["name"] != "snapshot"
        }

    def _list_gets(self, path: str, schemas: dict[str, Row]) -> Iterator[Request]:
        yield Request(path, "GET", path)
        if not schemas:
            yield Request(path, "GET", f"{path}?unknown=1")
            return
        for _ in range(self._draws // (1 if path.startswith(V3) else 2)):
            yield self._get(path, self._draw(path, schemas), rare=True)
        for name in sorted(schemas):
            if self._random.random() < self._draws / FULL:
                values = self._draw(path, schemas)
                yield self._get(path, values | {name: [self._random.choice(WRONG)]})
                if name not in MODIFIERS:
                    yield self._get(path, {name: self._values(path, name, schemas[name])})

    def _get(self, path: str, values: dict[str, list[str]], *, rare: bool = False) -> Request:
        """Return a request; a ``rare`` one may ask for an older snapshot or another form."""
        random, headers = self._random, {}
        pairs = [(name, value) for name, some in values.items() for value in some]
        if rare and random.random() < 0.12:
            pairs.append(("snapshot", random.choice(("1", "2", "0", "99999", "x"))))
        if rare and random.random() < 0.15:
            headers["Accept"] = random.choice(TABLES)
        if rare and random.random() < 0.08:
            headers[random.choice(("X-No-Address-Book", "X-No-Metadata"))] = "true"
        method = "HEAD" if rare and random.random() < 0.03 else "GET"
        return Request(path, method, path + (f"?{urlencode(pairs)}" if pairs else ""), headers)

    def _draw(self, path: str, schemas: dict[str, Row]) -> dict[str, list[str]]:
        """Return parameters that fit together more often than not, with values of one scene."""
        random = self._random
        self._change_scene()
        chosen = {name for name, schema in schemas.items() if schema["required"]}
        keys = [name for name in schemas if name not in MODIFIERS]
        if keys and not chosen:
            chosen |= set(random.sample(keys, min(len(keys), random.choice((1, 1, 1, 2)))))
        chosen |= {name for name in schemas if random.random() < (0.5 if name == "limit" else 0.2)}
        for group in TOGETHER:
            if chosen & set(group) and random.random() < 0.9:
                chosen |= set(group) & set(schemas)
        for paths, names in ALONE:
            some = sorted(chosen & set(names)) or sorted(set(names) & set(schemas))
            if path.startswith(paths) and some and random.random() < 0.9:
                chosen = chosen - set(names) | {random.choice(some)}
        chosen.discard("cursor")
        return {name: self._values(path, name, schemas[name]) for name in sorted(chosen)}

    def _values(self, path: str, name: str, schema: Row) -> list[str]:
        """Return the values of one parameter; several if it may be repeated."""
        values = [self._value(path, name, schema)]
        if schema.get("type") == "array" and self._random.random() < 0.4:
            for _ in range(self._random.randint(1, 3)):
                self._change_scene()
                values.append(self._value(path, name, schema))
        return values

    def _value(self, path: str, name: str, schema: Row) -> str:
        if name in WORDS:
            return self._random.choice(WORDS[name])
        if schema.get("type") == "boolean":
            return self._random.choice(("true", "false"))
        if schema.get("enum"):
            return str(self._random.choice(schema["enum"]))
        return self._pick(find_places(path, name)) or "1"

    def _change_scene(self) -> None:
        """Draw one row of each table: the values of one request come from the same rows."""
        self._rows = {name: self._random.choice(rows) for name, rows in self._tables.items()}

    def _pick(self, places: tuple[str, ...]) -> str | None:
        """Return a value of one of ``table.column``; None if no row has any of them."""
        pairs = [place.split(".") for place in places]
        found = [pair for pair in pairs if self._rows.get(pair[0], {}).get(pair[1]) is not None]
        if not found:
            return None
        table, column = self._random.choice(found)
        return self._write(self._rows[table], column)

    def _write(self, row: Row, column: str) -> str:
        """Return a value in one of the forms in which a client may write it."""
        choose, value = self._random.choice, row[column]
        if isinstance(value, list):
            value = choose(value) if value else b""
        workchain = row.get("workchain" if column == "account" else f"{column}_workchain")
        if workchain is not None:
            raw = f"{workchain}:{value.hex()}"
            return choose((raw, raw.upper(), *(_befriend(workchain, value, tag) for tag in TAGS)))
        if column == "shard":
            return choose((f"{value % (1 << 64):016X}", str(value)))
        if column == "opcode":
            return choose((f"0x{value % (1 << 32):08x}", str(value)))
        if not isinstance(value, bytes):
            return str(value)
        plain = base64.b64encode(value).decode()
        return (
            choose((value.hex(), plain, plain.translate(URL_SAFE))) if len(value) == 32 else plain
        )

    def _list_posts(self, path: str, operation: Row) -> Iterator[Request]:
        content = self._resolve(operation.get("requestBody", {})).get("content", {})
        schema = self._resolve(content.get("application/json", {}).get("schema", {}))
        properties = schema.get("properties") or BODIES.get(path, {})
        required = set(schema.get("required", BODIES.get(path, ())))
        schemas = {
            name: self._resolve(one) | {"required": name in required}
            for name, one in properties.items()
        }
        yield from self._post(path, {})
        for _ in range(max(1, self._draws // 6)):
            values = self._draw(path, schemas)
            body = {name: self._typed(path, name, schemas[name], values[name]) for name in values}
            yield from self._post(path, body)
            if schemas and self._random.random() < 0.5:
                wrong: Any = self._random.choice((*WRONG, None, [], {}))
                yield from self._post(path, body | {self._random.choice(sorted(schemas)): wrong})
        text = self._random.choice(("[]", "{", "null", '"x"', ""))
        yield _send(f"POST {path}", path, text)

    def _typed(self, path: str, name: str, schema: Row, values: list[str]) -> Any:
        """Return a value as JSON has it; what only methods take comes from their own places."""
        special: dict[str, Callable[[], Any]] = {
            "method": lambda: self._random.choice(METHODS),
            "stack": lambda: self._random.choice(STACKS),
            "body": self._draw_bag,
            "boc": self._draw_bag,
            "init_code": lambda: self._random.choice(("", "", CELL)),
            "init_data": lambda: self._random.choice(("", "", CELL)),
        }
        if name == "cell" or (name in special and path.endswith("Simple")):
            return TREE
        if name in special:
            return special[name]()
        if schema.get("type") == "array" or name in {"opcodes", "bodies", "libraries"}:
            return values
        value = values[0]
        if schema.get("type") == "boolean":
            return value == "true"
        if schema.get("type") == "integer" or name in {"seqno", "workchain"}:
            is_number = value.lstrip("-").isdigit() and self._random.random() < 0.8
            return int(value) if is_number else value
        return value

    def _draw_bag(self) -> str:
        return self._random.choice((self._pick(("messages.body",)), CELL)) or CELL

    def _post(self, path: str, body: Row) -> Iterator[Request]:
        """Yield a request of the route's own path, and sometimes of jsonRPC."""
        yield _send(f"POST {path}", path, json.dumps(body))
        if path.startswith(V2) and self._random.random() < 0.6:
            envelope = {"id": 1, "method": path.removeprefix(V2), "params": body, "jsonrpc": "2.0"}
            yield _send(f"POST {RPC} {path}", RPC, json.dumps(envelope))

    def _list_pages(self) -> Iterator[Request]:
        for route, name in PAGES.items():
            for _ in range(max(1, self._draws // 3)):
                self._change_scene()
                value = quote(self._pick(find_places(route, name)) or "x", safe=":")
                yield Request(route, "GET", route.format(value), {"Accept": "text/html"})
            yield Request(route, "GET", route.format("x"), {"Accept": "text/html"})

    def _list_fixed(self) -> Iterator[Request]:
        """Yield what the document lacks: files, SQL, errors, other methods."""
        for path in SERVICE:
            yield Request(path.partition("?")[0], "GET", path, {"Accept": "text/html"})
        for statement in STATEMENTS[: self._draws]:
            for form in FORMATS:
                query = urlencode({"query": statement, "format": form})
                yield Request("/sql", "GET", f"/sql?{query}")
            yield _send("POST /sql", "/sql", json.dumps({"query": statement, "format": "csv"}))
            yield _send("POST /sql", "/sql", statement, "text/plain")
        origin = {"Origin": "https://example.org"}
        for target in TARGETS:
            for method in OTHER_METHODS:
                yield Request(f"{method} {target}", method, target)
            preflight = origin | {"Access-Control-Request-Method": "GET"}
            yield Request(f"OPTIONS {target}", "OPTIONS", target, preflight)
            yield Request(target, "GET", target, origin)
        for call in CALLS:
            yield _send(f"POST {RPC}", RPC, json.dumps(call))
        for text in ("theme=dark&back=/lake", "theme=x&back=//evil", ""):
            yield _send("POST /theme", "/theme", text, "application/x-www-form-urlencoded")


TAGS = (0x11, 0x51)
"""Bounceable addresses, and others (TEP-2)."""

URL_SAFE = str.maketrans("+/", "-_")


def _befriend(workchain: int, account: bytes, tag: int) -> str:
    packed = bytes((tag, workchain % 256)) + account
    return base64.urlsafe_b64encode(packed + crc_hqx(packed, 0).to_bytes(2)).decode()


def _send(route: str, path: str, text: str, kind: str = "application/json") -> Request:
    return Request(route, "POST", path, {"Content-Type": kind}, text.encode())
