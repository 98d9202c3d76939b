"""Tables for the views: labels, those that the settings name first, and stablecoins."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.account import normalize_address
from tonlake.lake.duck.statement import quote
from tonlake.lake.errors import SettingsError
from tonlake.lake.settings import LakeSettings

COLUMNS = ("address", "label", "category", "source")
_CODE_COLUMNS = ("code", *COLUMNS[1:])


class Label(NamedTuple):
    """A row of ``labels``: its address is raw."""

    address: str
    label: str
    category: str | None
    source: str | None


def read_labels(settings: LakeSettings) -> Mapping[str, Label]:
    """Return the labels by raw address: those of the settings, and the built-in ones."""
    given = _read_given(Path(settings.labels)) if settings.labels else {}
    return _read_shipped() | given


def render_labels(settings: LakeSettings) -> str:
    """Return the script that creates ``labels``, ``code_labels`` and ``stablecoins``."""
    rows = json.dumps([*read_labels(settings).values()], ensure_ascii=False)
    named = [text.strip() for text in settings.stablecoins.split(",") if text.strip()]
    coins = json.dumps(sorted({_read_address(text, "[lake] stablecoins") for text in named}))
    script = _read_file("sql/labels.sql")
    return script.format(labels=quote(rows), codes=quote(_read_codes()), coins=quote(coins))


@cache
def _read_shipped() -> dict[str, Label]:
    return _index(_read_csv(_read_file("labels.csv"), "labels.csv"), "labels.csv")


@cache
def _read_codes() -> str:
    rows = _read_csv(_read_file("code_labels.csv"), "code_labels.csv", _CODE_COLUMNS)
    return json.dumps([[row[name] for name in _CODE_COLUMNS] for row in rows])


def _read_file(name: str) -> str:
    return (files("tonlake.lake.duck") / name).read_text(encoding="utf-8")


def _read_given(path: Path) -> dict[str, Label]:
    """Return the labels of a user's file by address."""
    try:
        if path.suffix == ".parquet":
            rows = pq.read_table(path, columns=list(COLUMNS)).to_pylist()
        else:
            rows = _read_csv(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error
    return _index(rows, str(path))


def _read_csv(text: str, path: str, columns: Sequence[str] = COLUMNS) -> list[dict[str, str]]:
    reader = csv.DictReader(text.splitlines(keepends=True))
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        needed = ", ".join(columns)
        raise SettingsError(f"{path}: has no column {missing[0]}; it needs {needed}")
    return list(reader)


def _index(rows: Iterable[Mapping[str, str | None]], path: str) -> dict[str, Label]:
    found: dict[str, Label] = {}
    for number, row in enumerate(rows, 1):
        if not row["label"]:
            raise SettingsError(f"{path}: row {number} has no label")
        address = _read_address(row["address"] or "", f"{path}, row {number}")
        if address in found:
            raise SettingsError(f"{path}: row {number} labels {row['address']} a second time")
        found[address] = Label(
            address, row["label"], row["category"] or None, row["source"] or None
        )
    return found


def _read_address(text: str, place: str) -> str:
    """Return an address in raw form."""
    try:
        return normalize_address(text)
    except ValueError as error:
        raise SettingsError(f"{place}: {error}") from error
