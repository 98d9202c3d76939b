"""A browser visits every page: no foreign request, no error, no overflow, nothing unlabelled."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.explorer.chrome import AUDIT, Chrome
from tests.api.explorer.page import to_hex
from tests.api.growth import WAIT_S, Growth, serve
from tests.clients.packages import NODE, provide_packages

pytestmark = pytest.mark.long

AXE = NODE / "node_modules" / "axe-core" / "axe.min.js"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
"""What axe calls the rules of WCAG 2.2, levels A and AA."""

STREAM_OPEN = "new Promise((done) => setTimeout(done, 2000))"
"""The stream is asked for when the page is loaded; events before it is open are not sent."""

CHANGED = """
new Promise((done) => {
  const place = document.querySelector("%s"), before = %s;
  const look = () => {
    if (place.innerText !== before) done(true);
    else if (performance.now() > 60000) done(false);
    else setTimeout(look, 50);
  };
  look();
})
"""
"""Waits until a part of the page shows something else, a minute at most."""

STATUS = re.compile(r"the server responded with a status of (404|422) ")

DRAWN = """
new Promise((done) => {
  const look = () => (document.querySelector(".opblock-tag") ? done(0) : setTimeout(look, 50));
  look();
})
"""
"""Waits until Swagger UI has drawn the groups of operations."""

WIDER = """
[...document.querySelectorAll("main *, header *, footer *, aside *")]
  .filter((each) => !each.closest(".scroll, .picture, .quiet, pre, svg"))
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => `${each.tagName}.${each.className}: ${each.textContent.trim().slice(0, 40)}`)
"""
"""Elements that reach beyond the window and cannot be scrolled to."""


@pytest.fixture(scope="module")
def local_lake(ingest_network: Callable[[str], Path]) -> Path:
    """A lake of the reference data: split shards, key blocks, contracts of many kinds."""
    return ingest_network("node/localnet-db")


@pytest.fixture(scope="module", params=["demo_lake", "local_lake"])
def origin(request: pytest.FixtureRequest) -> Iterator[str]:
    """The lakes of the demo and of a larger network, each served over a port of its own."""
    with serve(request.getfixturevalue(request.param), sql={"enabled": True}) as served:
        yield served.url


@pytest.fixture(scope="module")
def chrome(origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with Chrome(tmp_path_factory.mktemp("profile"), origin) as browser:
        yield browser


@pytest.fixture(scope="module")
def paths(origin: str) -> dict[str, str]:
    """One page of every kind."""

    def ask(operation: str) -> Any:
        return httpx.get(f"{origin}/api/v3/{operation}", timeout=WAIT_S).json()

    transfer = ask("actions?action_type=jetton_transfer&limit=1")["actions"][0]
    item = ask("nft/items?limit=1")["nft_items"][0]
    account = f"/account/{transfer['details']['sender']}"
    jetton = f"/jetton/{transfer['details']['asset']}"
    return {
        "start": "/",
        "blocks": "/blocks",
        "lake": "/lake",
        "accounts": "/accounts",
        "jettons": "/jettons",
        "jettons by volume": "/jettons?sort=volume",
        "collections": "/collections",
        "config": "/config",
        "validators": "/validators",
        "past start": "/?seqno=100",
        "past account": f"{account}?seqno={transfer['trace_mc_seqno_end']}",
        "no past": "/lake?seqno=100",
        "search": "/search?q=nothing",
        "history": account,
        "transactions": f"{account}?show=transactions",
        "tokens": f"{account}?show=tokens",
        "nfts": f"{account}?show=nfts",
        "messages": f"{account}?show=messages",
        "sent": f"{account}?show=messages&way=out",
        "contract": f"{account}?show=contract&method=seqno",
        "filtered": f"{account}?direction=out&full=1",
        "transaction": f"/transaction/{to_hex(transfer['trace_id'])}",
        "trace": f"/trace/{to_hex(transfer['trace_id'])}",
        "block": f"/block/-1:8000000000000000:{transfer['trace_mc_seqno_end']}",
        "holders": jetton,
        "transfers": f"{jetton}?show=transfers",
        "nft": f"/nft/{item['address']}",
        "collection": f"/nft/{item['collection_address']}",
        "sql": "/sql",
        "rows": "/sql?format=html&query=select+now,lt+from+transactions+limit+9",
        "chart": "/sql?format=html&query=select+type,count(*)+from+actions+group+by+1",
        "error": "/account/zz",
    }


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark")])
def test_every_page_is_clean(
    chrome: Chrome, paths: dict[str, str], width: int, scheme: str
) -> None:
    found = {}
    for name, path in paths.items():
        chrome.problems.clear()
        chrome.open(path, width=width, scheme=scheme)
        # A page that says 404 or 422 is one, and the browser logs its status.
        logged = [each for each in chrome.problems if not STATUS.search(each)]
        if faults := [*chrome.run(AUDIT), *logged]:
            found[name] = faults
    assert found == {}


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_and_nothing_is_cut_off(
    chrome: Chrome, paths: dict[str, str], width: int, scheme: str
) -> None:
    found = {}
    for name, path in paths.items():
        chrome.open(path, width=width, scheme=scheme)
        if faults := [*_find_violations(chrome), *chrome.run(WIDER)]:
            found[name] = faults
    assert found == {}


def _find_violations(chrome: Chrome) -> list[str]:
    """Return what axe finds on the page that is open, an element each."""
    provide_packages()
    script = AXE.read_text(encoding="utf-8")
    options = json.dumps({"runOnly": RULES, "resultTypes": ["violations"]})
    chrome.run(f"{script}; 0")
    text = chrome.run(
        f"axe.run(document, {options}).then((found) => JSON.stringify(found.violations.map("
        "(each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`)))"
    )
    found: list[str] = json.loads(text)
    return found


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_api_reference_is_drawn_without_a_violation(
    chrome: Chrome, width: int, scheme: str
) -> None:
    chrome.problems.clear()
    chrome.open("/docs", width=width, scheme=scheme)
    chrome.run(DRAWN)
    assert [*_find_violations(chrome), *chrome.run(WIDER), *chrome.problems] == []
    chrome.run("document.querySelectorAll('#ui .opblock-tag').forEach(each => each.click())")
    assert chrome.run("document.querySelectorAll('#ui .opblock').length") > 100
    assert [*_find_violations(chrome), *chrome.run(WIDER), *chrome.problems] == []
    chrome.run("document.querySelector('#ui .opblock-summary-control').click()")
    assert chrome.run("location.hash").startswith("#/v3/")


@pytest.mark.parametrize("width", [390, 1440])
def test_no_column_and_no_picture_is_cut_off(
    chrome: Chrome, paths: dict[str, str], width: int
) -> None:
    """Only the tree of a trace may be wider than its frame, not on a phone: it can be zoomed."""
    zoomed = "" if width == 390 else ":not([data-zoom])"
    hidden = f"document.querySelectorAll('.scroll, .picture{zoomed}')"
    cut = {}
    for name, path in paths.items():
        chrome.open(path, width=width)
        over = chrome.run(f"[...{hidden}].map(each => each.scrollWidth - each.clientWidth)")
        if any(over):
            cut[name] = over
    assert cut == {}


def test_a_walk_by_clicks(chrome: Chrome, paths: dict[str, str]) -> None:
    chrome.open(paths["start"])
    sender = paths["history"].removeprefix("/account/")
    chrome.run(f"document.getElementById('q').value = '{sender}'")
    for step in (
        "document.querySelector('main form.find').requestSubmit()",
        "document.querySelector('.story a[href^=\"/trace/\"]').click()",
        "document.querySelector('main a[href^=\"/block/\"]').click()",
        "history.back()",
        "history.back()",
    ):
        seen = chrome.loads
        # Later, since a page that has gone cannot report that it was left.
        chrome.run(f"setTimeout(() => {step}, 50); 0")
        chrome.wait_load(seen)
    assert chrome.run("location.pathname").startswith("/account/")


def test_keys_alone_lead_through(chrome: Chrome, paths: dict[str, str]) -> None:
    chrome.open(paths["lake"])
    chrome.press("Tab")
    assert chrome.run("document.activeElement.className") == "skip"
    assert chrome.run("document.activeElement.getBoundingClientRect().left >= 0")
    chrome.press("/")
    assert chrome.run("document.activeElement.id") == "q"
    assert chrome.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert chrome.run("document.activeElement.value") == ""


def test_pages_work_without_scripts(chrome: Chrome, paths: dict[str, str]) -> None:
    chrome.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chrome.open(paths["blocks"])
    finally:
        chrome.call("Emulation.setScriptExecutionDisabled", value=False)
    assert chrome.run("document.querySelectorAll('tbody tr').length") == 25


def test_pages_follow_the_stream_without_a_reload(
    many_commits: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    growth = Growth(many_commits, tmp_path / "lake")
    growth.show(2)
    elector = f"/account/-1:{'3' * 64}"
    with (
        serve(growth.lake_dir) as served,
        Chrome(tmp_path_factory.mktemp("live"), served.url) as browser,
    ):
        # Without timers that repeat, the stream alone brings what is new.
        script = "window.setInterval = () => 0"
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        for path, place in (("/", "#figures"), (elector, "#state")):
            browser.open(path)
            before, loads = (
                browser.run(f"document.querySelector('{place}').innerText"),
                browser.loads,
            )
            browser.run(STREAM_OPEN)
            growth.show()
            changed = browser.run(CHANGED % (place, json.dumps(before)))
            assert changed
            assert browser.loads == loads
        assert browser.problems == []


def test_pictures_of_traces_are_zoomed(chrome: Chrome, paths: dict[str, str]) -> None:
    chrome.open(paths["trace"])
    size = "document.querySelector('[data-zoom] svg').getBoundingClientRect().width"
    before = chrome.run(size)
    buttons = "[...document.querySelectorAll('.zoom button')]"
    chrome.run(f"{buttons}.find((each) => each.textContent === 'Larger').click()")
    assert chrome.run(size) > before
