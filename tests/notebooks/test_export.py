"""Notebooks as HTML files render without a network, and report data that a lake lacks."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.explorer.chrome import AUDIT, Chrome

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))
DRAWN_S = 60


@pytest.fixture(scope="module")
def pages(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebooks on the demo lake as HTML pages."""
    folder = tmp_path_factory.mktemp("pages")
    command = [sys.executable, str(ROOT / "notebooks/export"), str(demo_lake), str(folder)]
    environment = os.environ | {"PYTHONPATH": ""}  # with pandas
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def chrome(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with Chrome(tmp_path_factory.mktemp("profile"), pages.as_uri()) as browser:
        browser.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        yield browser


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_drawn_without_a_network(chrome: Chrome, name: str) -> None:
    for width, scheme in ((390, "dark"), (1440, "light")):
        chrome.problems.clear()
        chrome.open(f"/{name}.html", width=width, scheme=scheme)
        end = time.monotonic() + DRAWN_S
        while not chrome.run("'drawn' in document.body.dataset"):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert [*chrome.run(AUDIT), *chrome.problems] == []
        figures = chrome.run("document.querySelectorAll('figure.chart').length")
        drawn = chrome.run(
            "[...document.querySelectorAll('figure.chart svg')]"
            ".filter((each) => each.querySelectorAll('.mark-rect path, .mark-symbol path,"
            " .mark-line path').length).length"
        )
        assert drawn == figures
        if name == "dex_volumes":
            assert figures == 0
            text = chrome.run("document.body.innerText")
            assert text.count("no swaps in this lake") == 3
        else:
            assert figures > 0


def test_text_of_a_lake_cannot_leave_its_place(pages: Path) -> None:
    """Charts are embedded in scripts: no token name may end one."""
    for name in NAMES:
        text = (pages / f"{name}.html").read_text(encoding="utf-8")
        charts = text.split('<script type="application/json">')[1:]
        for chart in charts:
            assert chart.index("<") == chart.index("</script></figure>")
