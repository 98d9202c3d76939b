"""The envelope of a log entry: the digest of its body, and the format of the log.

Entries of format 1 have no format field, as they predate it. An entry of a later format is
reported as such even if nothing else in it can be read.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tonlake.lake.errors import LakeCorrupt, LakeTooNew, advise
from tonlake.lake.schema import SCHEMA_VERSION

LOG_FORMAT = 4
"""Raised when earlier versions of this program could not read entries, or would misread them.

An entry has the lowest format that it needs, so earlier versions can read a lake as long as nothing
in it is new to them.
"""

_FORMATS = {"pruned": 2, "reported": 3}
"""Fields that bodies may have, each with the first format that has it."""

_PACK_FORMAT = 4
"""The first format whose files may be in packs; an earlier version would not find their rows."""


class LogEnvelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body with its SHA-256 in hex, and the format of the log."""

    sha256: str
    body: msgspec.Raw
    format: int = 1


_Body = TypeVar("_Body", bound=msgspec.Struct)


def encode_entry(body: msgspec.Struct) -> tuple[bytes, str]:
    """Return the bytes of an entry or a checkpoint, and the digest of its body."""
    raw = msgspec.json.encode(body, order="deterministic")
    digest = hashlib.sha256(raw).hexdigest()
    used = [
        lowest
        for name, lowest in _FORMATS.items()
        if getattr(body, name, msgspec.UNSET) is not msgspec.UNSET
    ]
    files = (file for name in ("added", "files") for file in getattr(body, name, ()))
    if any(getattr(file, "pack", "") for file in files):
        used.append(_PACK_FORMAT)
    envelope = LogEnvelope(digest, msgspec.Raw(raw), max(used, default=1))
    return msgspec.json.encode(envelope) + b"\n", digest


def read_body(lake_dir: Path, file: str, kind: type[_Body]) -> tuple[_Body, str]:
    """Return the body of a log file, and its digest; LakeCorrupt: damaged, LakeTooNew: later."""
    try:
        data = (lake_dir / file).read_bytes()
    except FileNotFoundError as error:
        raise LakeCorrupt(file, "it is missing") from error
    except OSError as error:
        if advise(error):
            raise  # missing rights and too many open files are no damage
        raise LakeCorrupt.unreadable(file, error) from error
    return parse_body(file, data, kind)


def parse_body(file: str, data: bytes, kind: type[_Body]) -> tuple[_Body, str]:
    """Return the body of a log file from its bytes, and its digest."""
    try:
        envelope = msgspec.json.decode(data, type=LogEnvelope)
        raw = envelope.body
        if envelope.format <= LOG_FORMAT and hashlib.sha256(raw).hexdigest() != envelope.sha256:
            raise LakeCorrupt(file, "its bytes do not match its digest")
        body = msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # One of a later version may have unknown fields, or a body of another kind.
        with suppress(msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
            loose = msgspec.json.decode(data, type=dict[str, Any])
            _check_version(file, loose.get("format", 1), 1)
            _check_version(file, 1, loose["body"]["schema_version"])
        raise LakeCorrupt(file, f"it is not a log entry ({error})") from error
    _check_version(file, envelope.format, getattr(body, "schema_version", 1))
    return body, envelope.sha256


def _check_version(file: str, log_format: int, schema_version: int) -> None:
    if log_format > LOG_FORMAT:
        raise LakeTooNew(file, f"log format {log_format}", LOG_FORMAT)
    if schema_version > SCHEMA_VERSION:
        raise LakeTooNew(file, f"schema version {schema_version}", SCHEMA_VERSION)
