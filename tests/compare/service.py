"""Runs the services of checkouts and ingests their lakes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"TONLAKE_SQL_ENABLED": "1"}
"""Names that settings have had in every version; SQL is compared, too."""

STOP_S = 60


def make_lake(checkout: Path, archive: Path, lake_dir: Path) -> None:
    """Ingest the node database of a ``.tar.zst`` with the code of a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        with (
            pa.input_stream(str(archive), compression="zstd") as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            tar.extractall(folder, filter="data")
        index = min(path for path in Path(folder).rglob("globalindex") if path.is_dir())
        subprocess.run(
            [_program(checkout), "ingest", "--node", index.parent.parent, "--lake", lake_dir],
            check=True,
            cwd=checkout,
            capture_output=True,
        )


@contextmanager
def serve(checkout: Path, lake_dir: Path, environment: dict[str, str]) -> Iterator[str]:
    """Serve a lake with the code of a checkout, and yield the address of the service."""
    command = [str(_program(checkout)), "serve", "--lake", str(lake_dir.resolve()), "--port", "0"]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command,
            cwd=checkout,
            env=os.environ | ENVIRONMENT | environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            found = re.match(r"http://127\.0\.0\.1:[1-9]\d*", first)
            assert found is not None, f"{checkout} serves nothing: {first}"
            yield found[0]
        except BaseException:
            log.seek(0)
            sys.stderr.write(f"exit code {process.poll()}\n{log.read()}")
            raise
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(STOP_S)


def _program(checkout: Path) -> Path:
    """Return the command of a checkout's own environment; ours is the running one."""
    if checkout.resolve() == ROOT:
        return Path(sys.executable).with_name("tonlake")
    return checkout.resolve() / ".venv" / "bin" / "tonlake"
