"""Opens a Spark session and a snapshot's tables as data frames, from any Hadoop file system."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.lake.commit.delta import describe_columns
from tonlake.lake.errors import EngineError, LakeNotFound
from tonlake.lake.file.rows import PackedRows
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LOG_FOLDER
from tonlake.lake.schema import TABLES
from tonlake.lake.storage.storage import (
    find_endpoint,
    is_url,
    list_needed,
    open_remote,
    open_storage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tonlake.lake.log.state import DataFile

_ADVICE = "install it with: pip install 'tonlake[spark]', and install Java 17"
_LOCAL = {
    # A machine may be unable to resolve its own host name.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_CHOSEN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


@contextmanager
def open_session(master: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session; ``conf`` overrides the settings here. Spark's failures raise EngineError."""
    try:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an extra
        from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    except ImportError as error:
        raise EngineError(f"Apache Spark is not installed ({error}); {_ADVICE}") from error
    session = None
    try:
        session = _start(master, conf)
        yield session
    except (PySparkException, Py4JJavaError) as error:
        raise EngineError(f"Spark: {error}" if session else f"{error}; {_ADVICE}") from error
    except FileNotFoundError as error:
        if session:
            raise
        raise EngineError(f"Spark does not start: {error}; {_ADVICE}") from error
    finally:
        if session:
            session.stop()


def _start(master: str, conf: Mapping[str, str]) -> SparkSession:
    # A warning about versions of pandas, which the lake does not use.
    warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tonlake").master(master)
    local = _LOCAL if master.startswith("local") else {}
    chosen = _CHOSEN | local | _read_storage(os.environ) | dict(conf)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _read_storage(environment: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's S3 settings from Amazon's environment variables; Spark finds credentials."""
    endpoint = find_endpoint(environment)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    found = {"endpoint.region": region} if region else {}
    if endpoint:
        # A self-hosted server has no host name per bucket.
        found |= {"endpoint": endpoint, "path.style.access": "true"}
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in found.items()}


_URL = re.compile(r"[a-z][a-z0-9+.-]*://.*")


class SparkLake:
    """A snapshot and a session; tables are read on demand."""

    def __init__(self, session: SparkSession, snapshot: Snapshot, root: str) -> None:
        """Take a snapshot and the root of its files as Spark sees it; see ``open_lake``."""
        # A separate session, as views of two lakes have the same names.
        self.session = session.newSession()
        self.snapshot = snapshot
        self._root = root

    def read(self, name: str) -> DataFrame:
        """Return a table, NULL in columns newer than a file; LakeCorrupt: one is damaged."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - an extra

        if name in self.snapshot.damaged:
            raise self.snapshot.damaged[name]
        files = self.snapshot.files[name]
        schema = StructType.fromJson(describe_columns(TABLES[name]))
        packed = self.session.createDataFrame(self._read_packed(name, files), schema)
        paths = [f"{self._root}/{file.path}" for file in files if not file.pack]
        if not paths:
            return packed
        reader = self.session.read.schema(schema).option("basePath", f"{self._root}/{name}")
        frame = reader.parquet(*paths)
        return frame if len(paths) == len(files) else frame.union(packed)

    def _read_packed(self, name: str, files: Sequence[DataFile]) -> pa.Table:
        """Return the rows of a table's files in packs, with the column of the folders."""
        rows = [TABLES[name].arrow.append(pa.field("day", pa.date32())).empty_table()]
        packed = [file for file in files if file.pack]
        if packed:
            paths = sorted({f"{self._root}/{file.pack}" for file in packed})
            packs = self.session.read.format("binaryFile").load(paths).collect()
            known = {Path(pack.path).name: pa.py_buffer(bytes(pack.content)) for pack in packs}
            rows.append(PackedRows(lambda path: known[Path(path).name]).read(name, packed))
        return pa.concat_tables(rows)


def open_lake(session: SparkSession, place: str, number: int | None = None) -> SparkLake:
    """Open a lake as of commit ``number``, the newest by default; errors as ``open_snapshot``.

    ``place`` is its folder, or its URL in object storage (``s3://bucket/my.lake``) or on another
    Hadoop file system. Digests are checked only for files of a local path.
    """
    if is_url(place):
        storage = open_storage(place)
        return SparkLake(session, open_remote(storage, number), f"s3a://{storage.root}")
    if _URL.fullmatch(place) is None:
        folder = Path(place).absolute()
        return SparkLake(session, open_snapshot(folder, number), f"file://{folder}")
    with tempfile.TemporaryDirectory(prefix="tonlake-log-") as folder_name:
        copy = Path(folder_name)
        _copy_log(session, place.rstrip("/"), copy, number)
        snapshot = open_snapshot(copy, number, check_digests=False)
    return SparkLake(session, snapshot, place.rstrip("/"))


def _copy_log(session: SparkSession, root: str, target: Path, number: int | None) -> None:
    """Copy the part of the log that a state needs: a checkpoint and the entries after it."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    try:
        entries = session.read.format("binaryFile").load(f"{root}/{LOG_FOLDER}/*.json")
        named = {row.path.rsplit("/", 1)[1]: row.path for row in entries.select("path").collect()}
    except (PySparkException, Py4JJavaError) as error:
        raise LakeNotFound(f"Spark finds no lake at {root}: {error}") from error
    needed = list_needed(named, number)
    (target / LOG_FOLDER).mkdir()
    rows = session.read.format("binaryFile").load([named[name] for name in needed])
    for row in rows.select("path", "content").toLocalIterator():
        (target / LOG_FOLDER / row.path.rsplit("/", 1)[1]).write_bytes(bytes(row.content))
