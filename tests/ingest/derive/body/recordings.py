"""Messages of recorded TON Center responses, and the forms of their decoded bodies."""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import read_lines
from tests.ingest.derive.body.encode import show_bag
from tonlake.ingest.derive.body.codec import Value


class Recorded(NamedTuple):
    """A message of a response; ``opcode_name`` is missing in responses of old versions."""

    file: str
    hash: str
    external_in: bool
    has_opcode_name: bool
    opcode_name: str | None
    body: str
    decoded: Any


def read_messages(shared: Path) -> list[Recorded]:
    """Return the distinct messages of all v3 responses and transaction pairs."""
    found: dict[str, Recorded] = {}
    for file, document in _documents(shared):
        for message in walk(document):
            content = message.get("message_content")
            if not content:
                continue
            recorded = Recorded(
                file,
                message["hash"],
                message.get("source") is None,
                "decoded_opcode" in message,
                message.get("decoded_opcode"),
                content["body"],
                content.get("decoded"),
            )
            key = json.dumps([message["hash"], recorded.opcode_name, recorded.decoded])
            found.setdefault(key, recorded)
    return list(found.values())


def _documents(shared: Path) -> Iterator[tuple[str, Any]]:
    data = shared / "data"
    for path in sorted((data / "responses" / "v3").rglob("*.json")):
        yield path.name, json.loads(path.read_bytes())
    for line in read_lines(data / "tx_pairs" / "v3_tx_pairs.jsonl.zst"):
        yield "tx_pairs", line


TRACES = [
    "classifier/traces",
    "classifier-new/traces",
    "classifier-networks/traces-demo",
    "classifier-networks/traces-localnet",
]
"""Traces of the main network, and of two networks of a node."""


def read_traces(shared: Path, name: str, *, is_internal: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield name and object of the distinct bodies of recorded traces whose opcode has a name."""
    bodies = set()
    for line in read_lines(shared / "data" / f"{name}.jsonl.zst"):
        for transaction in line["transactions"]:
            for message in [transaction["in_msg"], *transaction["out_msgs"]]:
                if message and message["body_boc"] and (message["source"] or not is_internal):
                    bodies.add(message["body_boc"])
    for body in bodies:
        opcode_name, value = show_bag(b64decode(body))
        if opcode_name is not None:
            yield opcode_name, value


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects inside a value of JSON."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            yield item
            todo += item.values()


def in_first_form(value: Value) -> Any:
    """Rewrite a value to the form of the oldest decoded answers, which named types differently."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, dict):
        return value
    fields = {name: in_first_form(field) for name, field in value.items() if name != "@type"}
    name = value.get("@type")
    if name is None:
        return fields
    if not fields:
        return name
    return {name: fields} if name == "dedust_swap" else {"type": name, **fields}


def without_address_kind(value: Any) -> Any:
    """Remove the objects that the oldest responses put around addresses."""
    if not isinstance(value, dict):
        return value
    for kind in ("internal_address", "external_address"):
        if set(value) == {kind}:
            return without_address_kind(value[kind])
    return {name: without_address_kind(field) for name, field in value.items()}
