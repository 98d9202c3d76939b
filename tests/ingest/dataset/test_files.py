"""Days of the data set are found in folders, object storage and on web servers."""

import shutil
from contextlib import closing
from datetime import date
from pathlib import Path

import httpx
import pytest
from pyarrow import fs

from tests.lake.web import plain_server
from tests.s3 import CREDENTIALS, S3Server
from tonlake.ingest.dataset.files import DataSet, list_days
from tonlake.ingest.errors import SourceError

DAY = date(2026, 11, 21)
ALWAYS = (0, 1 << 40)


def count_rows(place: Path | str) -> int:
    with closing(DataSet(place)) as found:
        assert not found.list_lacking(DAY)
        return int(found.read("transactions", [DAY], ALWAYS).read_all().num_rows)


def test_days_are_parsed() -> None:
    assert list_days("2026-11-21") == [DAY]
    assert list_days("2026-11-20..2026-11-22")[1] == DAY
    for text in ("", "..", "2026-11-21..", "2026-13-01", "2026-11-21..2026-11-20"):
        with pytest.raises(ValueError, match=text or "''"):
            list_days(text)


@pytest.mark.parametrize("name", ["date=2026-11-21", "block_date=20261121", "2026-11-21"])
def test_a_day_has_any_of_three_names(dataset: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(dataset, tmp_path / "copy")
    for table in copy.iterdir():
        (table / "date=2026-11-21").rename(table / name)
    (copy / "blocks" / "_SUCCESS").touch()
    shutil.copytree(copy / "blocks" / name, copy / "blocks" / "date=2026-13-40")
    assert count_rows(copy) == 1420


def test_a_web_server_that_lists_folders(dataset: Path) -> None:
    with plain_server(dataset) as url:
        assert count_rows(url) == 1420


def test_object_storage(
    dataset: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (CREDENTIALS | {"AWS_ENDPOINT_URL": s3_server.endpoint}).items():
        monkeypatch.setenv(name, value)
    httpx.put(f"{s3_server.endpoint}/public")
    bucket = fs.S3FileSystem(endpoint_override=s3_server.endpoint)
    for path in dataset.rglob("*.parquet"):
        with bucket.open_output_stream(f"public/ton/{path.relative_to(dataset)}") as stream:
            stream.write(path.read_bytes())
    assert count_rows("s3://public/ton") == 1420
    for name in CREDENTIALS.keys() - {"AWS_REGION"}:
        monkeypatch.delenv(name)
    assert count_rows("s3://public/ton") == 1420


def test_only_row_groups_of_the_time_are_read(dataset: Path) -> None:
    with closing(DataSet(dataset)) as found:
        assert found.read("messages", [DAY], (0, 1)).read_all().num_rows == 0
        assert found.read("messages", [], ALWAYS).read_all().num_rows == 0


def test_a_folder_without_the_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no day of blocks"):
        DataSet(tmp_path)
