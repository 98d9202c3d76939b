"""Requests missing from the OpenAPI document: pages, files, SQL, errors, other methods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.compare.ask import Request
from tests.compare.place import ACCOUNTS, HASHES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.compare.sample import Scene

SERVICE = (
    *("/healthcheck", "/healthz", "/readyz", "/version", "/openapi.json", "/docs", "/metrics"),
    *("/docs/swagger-ui.css", "/docs/favicon-32x32.png", "/docs/nothing", "/nothing", "/api"),
    *("/api/v2", "/api/v2/", "/api/v2/nothing", "/api/v3", "/api/v3/nothing", "/api/v3/blocks/"),
    *("/api/v3/index.html", "/api/v3/doc.json", "/api/v3/%00", "/api/v4/blocks", "//"),
    *("/api/streaming/v2/sse?types=x", "/api/streaming/v2/sse?last_event_id=x", "/explorer/x.css"),
)
PAGES = {
    "/account/": ACCOUNTS,
    "/jetton/": ("jetton_masters.account", "jetton_wallets.account"),
    "/nft/": ("nft_items.account", "nft_collections.account"),
    "/transaction/": ("transactions.hash", "transactions.in_msg_hash"),
    "/trace/": ("traces.trace_id", "transactions.hash"),
    "/block/": ("blocks.seqno",),
}
LISTS = ("", "?show=transactions", "?show=jettons", "?show=nfts", "?show=x", "?offset=20")
STATEMENTS = (
    "select count(*) as n from blocks",
    "select seqno, shard, gen_utime from blocks order by all limit 20",
    "select hash, lt, boc from transactions order by lt, hash limit 5",
    (
        "select workchain, count(*) as n, sum(total_fees) as fees from transactions"
        " group by all order by all"
    ),
    "select type, count(*) as n from actions group by all order by all",
    "select kind, min(value), max(value) from messages group by all order by all",
    "select 1 as a; select 2",
    "selec",
    "drop table blocks",
    "select * from nothing",
    "",
)
FORMATS = ("json", "csv", "arrow", "parquet", "html", "x")
OTHER_METHODS = ("PUT", "DELETE", "OPTIONS", "PATCH", "POST", "HEAD")
TARGETS = ("/", "/api/v2/getMasterchainInfo", "/api/v3/blocks", "/sql", "/docs", "/api/v2/jsonRPC")
CALLS: tuple[dict[str, Any], ...] = (
    {"method": "nothing", "id": 1, "jsonrpc": "2.0", "params": {}},
    {"method": "getMasterchainInfo", "params": []},
    {"method": "getMasterchainInfo"},
    {"method": 5},
    {},
)


def list_fixed(scene: Callable[[], Scene], draws: int) -> list[Request]:
    """Return the requests, ``draws`` of each page."""
    return [
        *(Request(path.partition("?")[0], "GET", path) for path in SERVICE),
        *_list_pages(scene, draws),
        *_list_statements(draws),
        *_list_methods(),
    ]


def _list_pages(scene: Callable[[], Scene], draws: int) -> Iterator[Request]:
    headers = {"Accept": "text/html"}
    for path in ("/", "/lake", "/blocks", "/blocks/rows", "/search", "/search?q=", "/search?q=zz"):
        yield Request(path.partition("?")[0], "GET", path, headers)
    for number in range(draws):
        for route, places in PAGES.items():
            value = scene().quoted(places)
            if route == "/block/":
                drawn = scene()
                names = ("blocks.workchain", "blocks.shard", "blocks.seqno")
                value = ":".join(drawn.quoted((name,)) for name in names)
            more = LISTS[number % len(LISTS)] if route == "/account/" else ""
            yield Request(route, "GET", f"{route}{value}{more}", headers)
        drawn = scene()
        places = (*ACCOUNTS, *HASHES, *MESSAGES, "dns_records.domain", "blocks.seqno")
        text = urlencode({"q": drawn.draw(places) or ""})
        yield Request("/search", "GET", f"/search?{text}", headers)
        before = drawn.quoted(("blocks.mc_seqno",))
        for path in ("/blocks", "/blocks/rows"):
            yield Request(path, "GET", f"{path}?before={before}", headers)
    for route in PAGES:
        yield Request(route, "GET", f"{route}x", headers)


def _list_statements(draws: int) -> Iterator[Request]:
    for number, text in enumerate(STATEMENTS[: draws - 1]):
        for form in FORMATS if number < draws else FORMATS[:2]:
            target = "/sql?" + urlencode({"query": text, "format": form})
            yield Request("/sql", "GET", target)
        yield Request("POST /sql", "POST", "/sql", {"Content-Type": "text/plain"}, text.encode())
        body = json.dumps({"query": text, "format": "csv"}).encode()
        yield Request("POST /sql", "POST", "/sql", {"Content-Type": "application/json"}, body)
    yield Request("/sql", "GET", "/sql", {"Accept": "text/html"})


def _list_methods() -> Iterator[Request]:
    origin = {"Origin": "https://example.org"}
    for target in TARGETS:
        for method in OTHER_METHODS:
            yield Request(f"{method} {target}", method, target)
        preflight = origin | {"Access-Control-Request-Method": "GET"}
        yield Request(f"OPTIONS {target}", "OPTIONS", target, preflight)
        yield Request(target, "GET", target, origin)
    for call in CALLS:
        body = json.dumps(call).encode()
        route = "/api/v2/jsonRPC"
        yield Request(f"POST {route}", "POST", route, {"Content-Type": "application/json"}, body)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for text in ("theme=dark&back=/lake", "theme=x&back=//evil", ""):
        yield Request("POST /theme", "POST", "/theme", form, text.encode())
