"""Derives requests over all routes of a service from its OpenAPI document and a lake's rows."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.compare.ask import Request
from tests.compare.fixed import list_fixed
from tests.compare.place import (
    ACCOUNTS,
    ALONE,
    HASHES,
    MODIFIERS,
    PLACES,
    PLACES_AT,
    TOGETHER,
    WORDS,
    WRONG,
)
from tests.compare.sample import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compare.sample import Sample

V2, V3, RPC = "/api/v2/", "/api/v3/", "/api/v2/jsonRPC"
TABLES = ("text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet")
FULL = 30
"""Requests with drawn parameters for each GET route; other routes have a share of it."""

Values = dict[str, list[str]]


class Derived:
    """The requests of one seed."""

    def __init__(self, sample: Sample, description: dict[str, Any], seed: int, draws: int) -> None:
        """Take rows, the OpenAPI document of a service, and how many requests a route gets."""
        self._sample, self._description, self._draws = sample, description, draws
        self._random = Random(seed)  # noqa: S311 - the same requests in every run
        self.requests: list[Request] = []

    def derive(self) -> list[Request]:
        """Return the requests; some of them twice, so that cached responses are compared, too."""
        for path, operations in sorted(self._description["paths"].items()):
            if path.startswith("/api/streaming/"):  # has no end
                continue
            if "get" in operations and "{" not in path:
                self._derive_get(path, self._parameters_of(operations["get"]))
            if "post" in operations:
                self._derive_post(path, operations["post"])
        self.requests += list_fixed(self._scene, max(1, self._draws // 3))
        again = [one for one in self.requests if one.method == "GET" and "/docs" not in one.route]
        self.requests += self._random.sample(again, len(again) // 12)
        return self.requests

    def _scene(self) -> Scene:
        return Scene(self._sample, self._random)

    def _resolve(self, found: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in found:
            where: Any = self._description
            for name in found["$ref"].split("/")[1:]:
                where = where[name]
            found = where
        return found

    def _parameters_of(self, operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the schemas of the query parameters."""
        found = [self._resolve(one) for one in operation.get("parameters", [])]
        return {
            one["name"]: one["schema"] | {"required": one.get("required", False)}
            for one in found
            if one.get("in", "query") == "query" and one["name"] != "snapshot"
        }

    def _derive_get(self, path: str, schemas: dict[str, dict[str, Any]]) -> None:
        self._add_get(path, {})
        if not schemas:
            self._add_get(path, {}, rare=True)
            self._add_get(path, {"unknown": ["1"]})
            return
        version = 1 if path.startswith(V3) else 2
        for _ in range(self._draws // version):
            self._add_get(path, self._draw(path, schemas), rare=True)
        for name in sorted(schemas):
            if self._draws >= FULL or self._random.random() < self._draws / FULL:
                values = self._draw(path, schemas)
                values[name] = [self._random.choice(WRONG)]
                self._add_get(path, values)
                if name not in MODIFIERS:
                    self._add_get(path, {name: self._value(path, name, schemas[name])})

    def _draw(self, path: str, schemas: dict[str, dict[str, Any]]) -> Values:
        """Return parameters that fit together more often than not."""
        random = self._random
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
        scene = self._scene()
        return {name: self._value(path, name, schemas[name], scene) for name in sorted(chosen)}

    def _value(
        self, path: str, name: str, schema: dict[str, Any], scene: Scene | None = None
    ) -> list[str]:
        """Return the values of one parameter; several if it may be repeated."""
        several = schema.get("type") == "array" and self._random.random() < 0.4
        count = self._random.randint(2, 4) if several else 1
        places = PLACES_AT.get((path, name)) or PLACES.get(name, ())
        if path.startswith(V2) and name == "seqno" and "/getBlock" not in path:
            places = ("blocks.mc_seqno",) if "lookup" not in path else places
        scenes = [scene or self._scene(), *(self._scene() for _ in range(count - 1))]
        return [self._one(name, schema, places, one) for one in scenes]

    def _one(self, name: str, schema: dict[str, Any], places: tuple[str, ...], scene: Scene) -> str:
        if name in WORDS:
            return self._random.choice(WORDS[name])
        if schema.get("type") == "boolean":
            return self._random.choice(("true", "false"))
        if schema.get("enum"):
            return str(self._random.choice(schema["enum"]))
        others = HASHES if "hash" in name or name.endswith("_id") else ACCOUNTS
        return scene.draw(places) or scene.draw(others) or "1"

    def _add_get(self, path: str, values: Values, *, rare: bool = False) -> None:
        """Add a request; a ``rare`` one may ask for an older snapshot or another form."""
        random, headers = self._random, {}
        pairs = [(name, value) for name, some in values.items() for value in some]
        if rare and random.random() < 0.12:
            numbers = [*map(str, range(1, self._sample.snapshots + 1)), "0", "99999", "x"]
            pairs.append(("snapshot", random.choice(numbers)))
        if rare and random.random() < 0.15:
            headers["Accept"] = random.choice(TABLES)
        if rare and random.random() < 0.08:
            headers[random.choice(("X-No-Address-Book", "X-No-Metadata"))] = "true"
        target = path + (f"?{urlencode(pairs)}" if pairs else "")
        method = "HEAD" if rare and random.random() < 0.03 else "GET"
        self.requests.append(Request(path, method, target, headers))

    def _derive_post(self, path: str, operation: dict[str, Any]) -> None:
        if path == RPC:
            return
        content = self._resolve(operation.get("requestBody", {})).get("content", {})
        schema = self._resolve(content.get("application/json", {}).get("schema", {}))
        if not schema.get("properties"):
            schema = schema | {"properties": _BODIES.get(path, {})}
        required = set(schema.get("required", _BODIES.get(path, ())))
        schemas = {
            name: self._resolve(one) | {"required": name in required}
            for name, one in schema["properties"].items()
        }
        self._add_post(path, {})
        for _ in range(max(1, self._draws // 6)):
            drawn = self._draw(path, schemas)
            body = {
                name: self._typed(path, name, schemas[name], some) for name, some in drawn.items()
            }
            self._add_post(path, body)
            if schemas and self._random.random() < 0.5:
                name = self._random.choice(sorted(schemas))
                self._add_post(path, body | {name: self._random.choice((*WRONG, None, [], {}))})
        self._add(path, self._random.choice(("[]", "{", "null", '"x"', "")))

    def _typed(self, path: str, name: str, schema: dict[str, Any], values: list[str]) -> Any:
        """Return a value as JSON has it; what only methods take comes from their own places."""
        if name == "cell" or (name in _CELLS and path.endswith("Simple")):
            return _CELL
        if name in _SPECIAL:
            return _SPECIAL[name](self._scene(), self._random)
        if schema.get("type") == "array" or name in {"opcodes", "bodies", "libraries"}:
            return values
        value = values[0]
        if schema.get("type") == "boolean":
            return value == "true"
        if schema.get("type") == "integer" or name in {"seqno", "workchain"}:
            plain = value.lstrip("-").isdigit() and self._random.random() < 0.8
            return int(value) if plain else value
        return value

    def _add_post(self, path: str, body: dict[str, Any]) -> None:
        """Request the route's own path, and sometimes jsonRPC."""
        self._add(path, json.dumps(body))
        if path.startswith(V2) and self._random.random() < 0.6:
            name = path.removeprefix(V2)
            envelope = {"id": len(self.requests), "method": name, "params": body, "jsonrpc": "2.0"}
            self._add(f"{RPC} {path}", json.dumps(envelope), RPC)

    def _add(self, route: str, text: str, path: str = "") -> None:
        headers = {"Content-Type": "application/json"}
        request = Request(f"POST {route}", "POST", path or route, headers, text.encode())
        self.requests.append(request)


METHODS = (
    *("seqno", "get_public_key", "get_jetton_data", "get_wallet_data", "get_nft_data"),
    *("get_collection_data", "active_election_id", "get_sale_data", "get_multisig_data"),
    *("get_order_data", "get_vesting_data", "get_subwallet_id", "nothing", "85143", "dnsresolve"),
    *("get_wallet_address", "get_nft_address_by_index", "royalty_params"),
)
ELECTOR = "-1:" + "3" * 64
EMPTY_CELL = "te6cckEBAQEAAgAAAEysuc0="


def _draw_method(scene: Scene, random: Random) -> str | int:
    del scene
    name = random.choice(METHODS)
    return int(name) if name.isdigit() else name


def _draw_stack(scene: Scene, random: Random) -> list[list[Any]]:
    index = scene.draw(("nft_items.item_index",)) or "0"
    choices: tuple[list[list[Any]], ...] = (
        [],
        [],
        [],
        [["num", index]],
        [["num", "0x1"], ["tvm.Cell", EMPTY_CELL]],
        [["x"]],
    )
    return random.choice(choices)


def _draw_address(scene: Scene, random: Random) -> str:
    places = ("multisig_wallets.account", "jetton_masters.account", "wallets.account")
    others = ("nft_items.account", "jetton_wallets.account", "nft_collections.account")
    return random.choice((scene.draw(places), scene.draw(others), ELECTOR)) or ELECTOR


def _draw_bag(scene: Scene, random: Random) -> str:
    bags = (scene.draw(("messages.body",)), scene.draw(("transactions.boc",)), EMPTY_CELL)
    return random.choice(bags) or EMPTY_CELL


_SPECIAL: dict[str, Callable[[Scene, Random], Any]] = {
    "method": _draw_method,
    "stack": _draw_stack,
    "body": _draw_bag,
    "boc": _draw_bag,
    "init_code": lambda _scene, random: random.choice(("", "", EMPTY_CELL)),
    "init_data": lambda _scene, random: random.choice(("", "", EMPTY_CELL)),
}
_CELLS = ("body", "init_code", "init_data")
_CELL = {"data": {"b64": "AA==", "len": 8}, "refs": [{"data": {"b64": "gA==", "len": 1}}]}
_TEXT: dict[str, Any] = {"type": "string"}
_BODIES: dict[str, dict[str, Any]] = {
    "/api/v3/decode": {"opcodes": _TEXT, "bodies": _TEXT},
    "/api/v3/message": {"boc": _TEXT},
    "/api/v3/estimateFee": dict.fromkeys(("address", "body", "init_code", "init_data"), _TEXT),
    "/api/v3/runGetMethod": {"address": _TEXT, "method": _TEXT, "stack": {"type": "array"}},
}
