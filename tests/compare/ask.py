"""Asks a service requests, and finds the first difference of two responses."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import httpx
import msgspec

AT_ONCE = 4
TIMEOUT_S = 120
KEPT_S = 2
"""Shorter than the service's idle timeout, which may cross a request."""

TRIES, BUSY = 5, 503
PAGES = 2
"""How many more pages are asked for where a response names the next one."""

AROUND = 100
"""Characters on each side of the first one that differs."""

CURSOR = "x-tonlake-cursor"
HEADERS = (
    *("content-type", "x-tonlake-snapshot", "x-tonlake-warning", CURSOR, "x-tonlake-rows"),
    *("x-api-version", "x-content-type-options", "allow", "location", "cache-control", "vary"),
    *("retry-after", "set-cookie", "content-disposition", "content-security-policy"),
    "access-control-allow-origin",
)
"""What is compared of the head; how long a response took, and who made it, is not."""

RULES = (
    (re.compile(rb'("@extra":")\d+:[^"]*:[\d.]+'), rb"\1moment"),
    (re.compile(rb'("@type":"ext.blocks.consensusBlock".*"timestamp":)\d+'), rb"\1 0"),
    (re.compile(rb'("lag":)(\{[^}]*\}|[^,}]*)'), rb"\1 0"),
    (re.compile(rb"(<h2>[^<]* rows?</h2>\n<p>)[\d.,]+ ms"), rb"\1time"),
    (re.compile(rb'( data-nonce=")[^"]*'), rb"\1nonce"),
    (re.compile(rb"(Behind the clock by</span><strong>)[^<]*"), rb"\1moment"),
)
"""What says when a request was answered, and how far the newest block is behind the clock."""

_NONCE = re.compile(r"'nonce-[^']*'")
MEASURED = frozenset({"/metrics"})
"""Routes whose whole text are measurements."""


class Request(msgspec.Struct, frozen=True):
    """One request; differences are counted by ``route``."""

    route: str
    method: str
    target: str
    headers: dict[str, str] = {}
    body: bytes = b""

    def __str__(self) -> str:
        """Return it as a line to read."""
        headers = "".join(f" {name}={value}" for name, value in self.headers.items())
        body = f" {self.body.decode('utf-8', 'replace')[:400]}" if self.body else ""
        return f"{self.method} {self.target[:600]}{headers}{body}"

    @property
    def is_sending(self) -> bool:
        """Whether it may change the responses to later ones."""
        return "/send" in self.route or self.route.endswith("/api/v3/message")


class Answer(msgspec.Struct, frozen=True):
    """A response, without what differs between two runs."""

    status: int
    headers: dict[str, str]
    body: bytes


async def ask_all(url: str, requests: Sequence[Request]) -> list[list[Answer]]:
    """Return the pages of each response; SQL is asked one by one, messages are sent last."""
    found: dict[int, list[Answer]] = {}
    queues: dict[str, list[int]] = {"usual": [], "sql": [], "sending": []}
    for number, request in enumerate(requests):
        name = "sending" if request.is_sending else "usual"
        queues["sql" if "/sql" in request.route else name].append(number)
    limits = httpx.Limits(max_connections=AT_ONCE + 1, keepalive_expiry=KEPT_S)
    async with httpx.AsyncClient(
        base_url=url, timeout=TIMEOUT_S, limits=limits, trust_env=False
    ) as client:

        async def work(numbers: Iterator[int]) -> None:
            for number in numbers:
                client.cookies.clear()
                try:
                    found[number] = await _ask(client, requests[number])
                except httpx.HTTPError as error:
                    raise RuntimeError(f"no response to {requests[number]}: {error}") from error

        usual = iter(queues["usual"])
        await asyncio.gather(work(iter(queues["sql"])), *(work(usual) for _ in range(AT_ONCE)))
        await work(iter(queues["sending"]))
    return [found[number] for number in range(len(requests))]


async def _ask(client: httpx.AsyncClient, request: Request) -> list[Answer]:
    """Send one request, and follow its pages."""
    answers: list[Answer] = []
    target: str | None = request.target
    while target is not None and len(answers) <= PAGES:
        answers.append(await _ask_once(client, request, target))
        target = None
        if cursor := answers[-1].headers.get(CURSOR):
            bare = re.sub(r"&?\b(cursor|offset)=[^&]*", "", request.target)
            target = f"{bare}{'&' if '?' in bare else '?'}cursor={cursor}"
    return answers


async def _ask_once(client: httpx.AsyncClient, request: Request, target: str) -> Answer:
    for attempt in range(TRIES):
        response = await client.request(
            request.method, target, headers=request.headers, content=request.body or None
        )
        if response.status_code != BUSY or request.is_sending:
            break
        await asyncio.sleep(0.2 * 2**attempt)
    headers = {
        name: _NONCE.sub("'nonce-'", response.headers[name])
        for name in HEADERS
        if name in response.headers
    }
    body = b"" if request.route in MEASURED else response.content
    for pattern, replacement in RULES:
        body = pattern.sub(replacement, body)
    return Answer(response.status_code, headers, body)


def find_difference(before: Sequence[Answer], after: Sequence[Answer]) -> str | None:
    """Describe the first difference of two responses and of the pages that follow them."""
    for number, (one, other) in enumerate(zip_longest(before, after), 1):
        if one is None or other is None:
            return f"page {number}: only {'after' if one is None else 'before'}"
        if one.status != other.status:
            return f"page {number}: status {one.status} -> {other.status}: {other.body[:AROUND]!r}"
        for name in HEADERS:
            values = one.headers.get(name), other.headers.get(name)
            if values[0] != values[1]:
                return f"page {number}: {name}: {values[0]!r} -> {values[1]!r}"
        if one.body != other.body:
            return f"page {number}: {_describe(one.body, other.body)}"
    return None


def _describe(one: bytes, other: bytes) -> str:
    """Return where bodies differ: the path in a JSON document, or the place in the text."""
    try:
        path = _find_path(json.loads(one), json.loads(other), "$")
    except ValueError:
        path = None
    if path is not None:
        return path
    at = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    parts = [side[max(0, at - AROUND) : at + AROUND] for side in (one, other)]
    return f"byte {at} of {len(one)} -> {len(other)}: {parts[0]!r} -> {parts[1]!r}"


def _find_path(one: Any, other: Any, path: str) -> str | None:
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = ((f"{path}.{name}", one[name], other[name]) for name in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = ((f"{path}[{at}]", left, other[at]) for at, left in enumerate(one))
    else:
        sides = [json.dumps(side)[: 2 * AROUND] for side in (one, other)]
        return f"{path}: {sides[0]} -> {sides[1]}"
    found = (_find_path(left, right, at) for at, left, right in pairs)
    return next(filter(None, found), None)
