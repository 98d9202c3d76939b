"""Spark ingests to and queries object storage, with the rows of the local lake."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.commands import run_program

if TYPE_CHECKING:
    from tests.s3 import S3Server

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
JARS = ROOT / "build" / "spark-s3"


@pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None or not JARS.is_dir(),
    reason="needs the extra [spark], Java, and its client of S3 (make build/spark-s3)",
)
def test_a_lake_in_object_storage(s3: S3Server, demo_node: Path, tmp_path: Path) -> None:
    module = "tests.ingest.spark.storage"
    words = [str(demo_node), str(tmp_path / "lake"), "s3://lakes/spark", str(JARS)]
    done = run_program(sys.executable, "-m", module, *words, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows, answers = map(int, re.findall(r"(\d+) rows of", done.stdout))
    assert min(rows, answers) > 100
    # Java asked for the rows itself, not only Arrow for the log.
    paths = [path for method, path in s3.requests if method == "GET"]
    assert any("/transactions/day=" in path for path in paths)
