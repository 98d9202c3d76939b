"""API keys, the key file with their salted hashes, and the command ``tonlake key``.

A key is ``tl_<id>_<secret>``: the id finds its record, and a secret of 256 random bits proves it.
Secrets of that size cannot be brute-forced, so one round of SHA-256 is as safe as a slow hash.
"""

import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from tonlake.api.errors import KeyFileInvalid
from tonlake.api.settings import Settings
from tonlake.lake.command.cli import failing_cleanly, json_option, read_settings
from tonlake.lake.errors import LakeError
from tonlake.lake.log.disk import hold_lock, sync_folder, unfinished
from tonlake.lake.system import sync

PREFIX = "tl"
ID_BYTES, SALT_BYTES, SECRET_BYTES = 4, 16, 32
_PARTS = 3


class KeyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a key; ``digest`` is the SHA-256 of the salt bytes and the full key."""

    id: str
    name: str
    salt: str
    digest: str
    rps: int
    made_at: str

    def matches(self, key: str) -> bool:
        """Return whether ``key`` is this key, in constant time."""
        return hmac.compare_digest(_digest(self.salt, key), self.digest)


class _KeyFile(msgspec.Struct, forbid_unknown_fields=True):
    version: int = 1
    keys: list[KeyRecord] = []


_NO_RECORD = KeyRecord("", "", "00" * SALT_BYTES, "00" * 32, 1, "")


def make_key(name: str, rps: int) -> tuple[str, KeyRecord]:
    """Return a new key, to be shown once, and the record to store."""
    identity, salt = secrets.token_hex(ID_BYTES), secrets.token_hex(SALT_BYTES)
    key = f"{PREFIX}_{identity}_{secrets.token_urlsafe(SECRET_BYTES)}"
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return key, KeyRecord(identity, name, salt, _digest(salt, key), rps, made_at)


def find_record(records: dict[str, KeyRecord], key: str) -> KeyRecord | None:
    """Return the record of a key, or None; unknown ids take as long as wrong secrets."""
    parts = key.split("_", _PARTS - 1)
    record = records.get(parts[1], _NO_RECORD) if len(parts) == _PARTS else _NO_RECORD
    return record if record.matches(key) else None


def read_keys(path: Path) -> dict[str, KeyRecord]:
    """Return the records of a key file by id; {} without the file. Raises KeyFileInvalid."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_KeyFile)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KeyFileInvalid(f"the key file {path} cannot be read: {error}") from error
    return {record.id: record for record in found.keys}


def add_key(path: Path, name: str, rps: int) -> str:
    """Create a key, store its record in the key file, and return the key."""
    key, record = make_key(name, rps)
    with _changing(path):
        _write_keys(path, [*read_keys(path).values(), record])
    return key


def revoke_key(path: Path, identity: str) -> KeyRecord | None:
    """Remove a key from the key file and return its record; None if there is no such key."""
    if identity not in read_keys(path):  # a file that is not there gets no lock beside it
        return None
    with _changing(path):
        records = read_keys(path)
        gone = records.pop(identity, None)
        if gone is not None:
            _write_keys(path, records.values())
    return gone


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Lock a key file for a change; errors of the system name the file."""
    try:
        with hold_lock(path.with_name(f"{path.name}.lock")):
            yield
    except OSError as error:
        raise KeyFileInvalid(f"the key file {path} cannot be written: {error.strerror}") from error


def _write_keys(path: Path, records: Iterable[KeyRecord]) -> None:
    """Replace a key file by one that only its owner can read."""
    data = msgspec.json.format(msgspec.json.encode(_KeyFile(keys=list(records))), indent=2)
    with unfinished(path.resolve()) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data + b"\n")
            stream.flush()
            sync(stream.fileno())
    sync_folder(path.resolve().parent)


def _digest(salt: str, key: str) -> str:
    return hashlib.sha256(bytes.fromhex(salt) + key.encode("utf-8", "replace")).hexdigest()


LOG = logging.getLogger("tonlake.api")
LOOK_EVERY_S = 1.0
"""A revoked key is refused after this long at most."""

_Look = tuple[int, int, int] | None


class Keyring:
    """Finds the record of a key, reloading the file when it changes; for one thread."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """Read the key file, and raise as ``read_keys``; ``clock`` returns seconds."""
        self._path, self._clock = path, clock
        self._looked_s = clock()
        self._seen = self._look()
        self._records = self._read()

    def find(self, key: str) -> KeyRecord | None:
        """Return the record of a key, or None if it is unknown."""
        if self._clock() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = self._clock()
            before, self._seen = self._seen, self._look()
            if self._seen != before:
                try:
                    self._records = self._read()
                except KeyFileInvalid as error:
                    LOG.error("%s; the previous keys remain valid", error)  # noqa: TRY400 - one line
        return find_record(self._records, key)

    def _read(self) -> dict[str, KeyRecord]:
        records = read_keys(self._path)
        if self._seen is None:
            LOG.warning("the key file %s does not exist: no key is valid until it does", self._path)
        return records

    def _look(self) -> _Look:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


keys_option = click.option(
    "--keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Key file.  [default: setting [access] keys_file]",
)


@click.group("key")
def key_group() -> None:
    """Manage API keys of a service; the key file holds salted hashes, never the keys."""


@key_group.command("add")
@click.argument("name")
@click.option(
    "--rps",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Requests per second.",
)
@keys_option
def add_command(*, name: str, rps: int, keys: Path | None) -> None:
    """Create a key for NAME and print it; it is not shown again."""
    if not name.strip():
        raise click.UsageError("NAME is empty: it says whose key it is")
    with failing_cleanly(KeyFileInvalid):
        click.echo(add_key(_open(keys), name, rps))


@key_group.command("list")
@keys_option
@json_option
def list_command(*, keys: Path | None, as_json: bool) -> None:
    """Print id, rate limit, creation time and name of every key."""
    path = _open(keys)
    with failing_cleanly(KeyFileInvalid):
        records = read_keys(path).values()
        if not path.exists():
            raise KeyFileInvalid(f"{path} does not exist; tonlake key add makes it")
    shown = [
        {"id": one.id, "name": one.name, "rps": one.rps, "made_at": one.made_at} for one in records
    ]
    if as_json:
        click.echo(msgspec.json.encode(shown))
        return
    for line in shown:
        click.echo(f"{line['id']}  {line['rps']:>6}/s  {line['made_at']}  {line['name']}")


@key_group.command("revoke")
@click.argument("identity", metavar="ID")
@keys_option
def revoke_command(*, identity: str, keys: Path | None) -> None:
    """Revoke the key that tonlake key list shows as ID."""
    path = _open(keys)
    with failing_cleanly(KeyFileInvalid):
        gone = revoke_key(path, identity)
        if gone is None:
            raise KeyFileInvalid(f"{path} has no key {identity!r}; see tonlake key list")
    click.echo(f"revoked: {gone.id} {gone.name}")


def _open(keys: Path | None) -> Path:
    """Return the key file from the option or the setting."""
    try:
        path = keys or read_settings(Settings).access.keys_file
    except LakeError as error:
        raise click.UsageError(str(error)) from error
    if not path:
        raise click.UsageError("name the file of keys with --keys, or set [access] keys_file")
    return Path(path)


commands: list[click.Command] = [key_group]
