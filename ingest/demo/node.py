"""Ingests node databases packed as ``.tar.zst``; one of them is shipped with the program."""

import shutil
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from importlib.resources import as_file, files
from pathlib import Path

import pyarrow as pa

from tonlake.ingest.errors import SourceError
from tonlake.ingest.run.pipeline import IngestReport, Progress, ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span

SHIPPED = "demo-node.tar.zst"


def open_shipped() -> AbstractContextManager[Path]:
    """Return a context manager with the path of the shipped node database."""
    return as_file(files("tonlake.ingest.demo").joinpath(SHIPPED))


def ingest_archive(
    archive: Path,
    lake_dir: Path,
    settings: IngestSections,
    on_progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Unpack a node database into a temporary folder, and ingest all of it."""
    with tempfile.TemporaryDirectory(prefix="tonlake-demo-") as folder:
        database = _unpack(archive, Path(folder))
        with closing(open_node(database, proofs=settings.ingest.block_proofs)) as source:
            span = Span(source.first_mc_seqno(), source.last_mc_seqno())
            return ingest(source, lake_dir, span, settings, on_progress)


def _unpack(archive: Path, folder: Path) -> Path:
    try:
        with (
            pa.input_stream(str(archive), compression="zstd") as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            _extract(tar, folder)
    except (OSError, tarfile.TarError) as error:
        raise SourceError(f"{archive.name} cannot be unpacked as .tar.zst: {error}") from error
    database = next((path.parents[1] for path in folder.rglob("files/globalindex")), None)
    if database is None:
        raise SourceError(f"{archive.name} contains no node database: files/globalindex is missing")
    return database


def _extract(tar: tarfile.TarFile, folder: Path) -> None:
    """Extract files and folders below ``folder``; reject links and paths outside of it.

    ``extractall(filter="data")`` requires Python 3.11.4; Debian 12 has 3.11.2.
    """
    for member in tar:
        target = folder / member.name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise tarfile.TarError(f"{member.name} is outside the archive")
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        data = tar.extractfile(member) if member.isreg() else None
        if data is None:
            raise tarfile.TarError(f"{member.name} is neither file nor folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(data, file)
