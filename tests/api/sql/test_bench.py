"""The page /sql in a browser: the editor, its keys, its storage, and the page without scripts."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.api.explorer.chrome import AUDIT, Chrome
from tests.api.growth import serve
from tests.patience import wait_for
from tonlake.api.sql.page import list_examples

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
BUNDLE = ROOT / "api/explorer/static/codemirror.js"
COUNTED = "select workchain, count(*) as n from blocks group by all order by all"
CONTROL = 2
ROWS = "document.querySelectorAll('#answer tbody tr').length"


@pytest.fixture(scope="module")
def chrome(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with (
        serve(demo_lake, sql={"enabled": True}) as served,
        Chrome(tmp_path_factory.mktemp("profile"), served.url) as browser,
    ):
        yield browser


def wait(chrome: Chrome, expression: str) -> None:
    """Wait until an expression is true in the page."""
    wait_for(lambda: chrome.run(f"Boolean({expression})"))


def write(chrome: Chrome, text: str) -> None:
    chrome.run("document.querySelector('.cm-content').focus()")
    chrome.call("Input.insertText", text=text)


def press_key(chrome: Chrome, key: str, code: int, modifiers: int = 0) -> None:
    for kind in ("rawKeyDown", "keyUp"):
        chrome.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=key,
            windowsVirtualKeyCode=code,
            modifiers=modifiers,
        )


def test_control_and_enter_run_without_a_new_page(chrome: Chrome) -> None:
    chrome.problems.clear()
    chrome.open("/sql")
    loads = chrome.loads
    write(chrome, COUNTED)
    press_key(chrome, "Enter", 13, CONTROL)
    wait(chrome, f"{ROWS} === 2")
    assert chrome.loads == loads
    assert chrome.run("new URLSearchParams(location.search).get('query')") == COUNTED
    assert chrome.run("document.querySelector('[data-status]').textContent") == "2 rows"
    assert chrome.run("document.querySelectorAll('#answer svg path.line').length") == 1
    chrome.run("document.querySelector('#answer [name=chart]').value = 'scatter'")
    chrome.run("document.querySelector('#answer form').requestSubmit()")
    wait(chrome, "document.querySelectorAll('#answer circle').length === 2")
    chrome.run("setTimeout(() => history.go(-2))")
    chrome.wait_load(loads)
    assert chrome.run("location.search") == ""
    assert chrome.problems == []


def test_a_link_shows_the_same_answer(chrome: Chrome) -> None:
    fields = {"query": COUNTED, "format": "html", "chart": "bar", "x": "workchain", "y": "n"}
    chrome.open("/sql?" + urlencode(fields))
    assert chrome.run(ROWS) == 2
    assert chrome.run("document.querySelector('.cm-content').textContent") == COUNTED
    assert chrome.run("document.querySelector('#answer [name=chart]').value") == "bar"
    assert chrome.run("document.querySelectorAll('#answer a[href^=\"/sql?\"]').length") == 4


def test_names_of_the_lake_are_completed(chrome: Chrome) -> None:
    chrome.open("/sql")
    write(chrome, "select bal from v_accounts where las")
    chrome.press("t")
    wait(chrome, "document.querySelector('.cm-tooltip-autocomplete')")
    names = "[...document.querySelectorAll('.cm-completionLabel')].map((each) => each.textContent)"
    assert {"last_lt", "last_tx_hash"} <= set(chrome.run(names))


def test_keys_lead_out_of_the_editor(chrome: Chrome) -> None:
    chrome.open("/sql")
    inside = "document.activeElement.className.includes('cm-content')"
    write(chrome, "from blocks ")
    press_key(chrome, "Tab", 9)
    assert chrome.run(inside)
    press_key(chrome, "Escape", 27)
    press_key(chrome, "Tab", 9)
    assert not chrome.run(inside)
    assert chrome.run("document.activeElement.textContent") == "Run"


def test_statements_are_saved_in_the_browser(chrome: Chrome) -> None:
    chrome.open("/sql")
    saved = "[...document.querySelectorAll('[data-saved] a')].map((each) => each.textContent)"
    assert chrome.run(saved) == []
    write(chrome, COUNTED)
    chrome.run("window.prompt = () => '<b>mine</b>'")
    chrome.run("document.querySelector('[data-save]').click()")
    chrome.open("/sql")
    assert chrome.run(saved) == ["<b>mine</b>"]
    loads = chrome.loads
    chrome.run("document.querySelector('[data-saved] a').click()")
    chrome.wait_load(loads)
    assert chrome.run(ROWS) == 2
    chrome.run("document.querySelector('[data-saved] button').click()")
    assert chrome.run(saved) == []
    assert chrome.run("document.querySelector('[data-saved]').hidden")


def test_the_schema_is_searched(chrome: Chrome) -> None:
    chrome.open("/sql")

    def search(words: str) -> list[str]:
        chrome.run(
            "{ const field = document.querySelector('[data-schema-search]');"
            f"field.value = '{words}'; field.dispatchEvent(new Event('input')); }}"
        )
        shown = "[...document.querySelectorAll('[data-view]')].filter((each) => !each.hidden)"
        names: list[str] = chrome.run(f"{shown}.map((each) => each.dataset.view)")
        return names

    everything = search("")
    assert search("storage fees due") == ["traced_transactions", "transactions"]
    columns = "[...document.querySelectorAll('[data-view=transactions] dt')]"
    shown = f"{columns}.filter((each) => !each.hidden).map((each) => each.firstChild.textContent)"
    assert chrome.run(shown) == ["storage_fees_due"]
    assert search("nothing like this") == []
    assert not chrome.run("document.querySelector('[data-schema-none]').hidden")
    assert search("") == everything


def test_a_fault_of_the_service_is_shown(chrome: Chrome) -> None:
    chrome.open("/sql")
    chrome.run("window.fetch = () => Promise.reject(new Error('no network'))")
    write(chrome, COUNTED)
    press_key(chrome, "Enter", 13, CONTROL)
    wait(chrome, "document.querySelector('#answer').textContent.includes('no network')")


def test_the_page_works_without_scripts(chrome: Chrome) -> None:
    chrome.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chrome.open("/sql")
        loads = chrome.loads
        chrome.run("document.querySelector('textarea').value = 'select 1 as a, 2 as b'")
        chrome.run("document.querySelector('form.sql').submit()")
        chrome.wait_load(loads)
    finally:
        chrome.call("Emulation.setScriptExecutionDisabled", value=False)
    assert chrome.run("document.querySelector('textarea').offsetHeight > 100")
    assert chrome.run("document.querySelector('.cm-editor')") is None
    assert chrome.run(ROWS) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_is_clean(chrome: Chrome, width: int, scheme: str) -> None:
    wrong = urlencode({"query": "selec", "format": "html"})
    examples = [example.path for example in list_examples()]
    for path in ("/sql", f"/sql?{wrong}", *(examples[::4] if width == 390 else examples[2::4])):
        chrome.problems.clear()
        chrome.open(path, width=width, scheme=scheme)
        chrome.run(
            "document.querySelectorAll('[data-view]').forEach((each) => { each.open = true; })"
        )
        logged = [each for each in chrome.problems if "responded with a status of 422" not in each]
        assert [*chrome.run(AUDIT), *logged] == [], path


def test_the_bundle_is_what_its_source_makes(tmp_path: Path) -> None:
    if not (ROOT / "editor/node_modules").is_dir():
        pytest.skip("the packages of the editor are not installed: make editor")
    made = tmp_path / "codemirror.js"
    subprocess.run(["node", "build.js", str(made)], cwd=ROOT / "editor", check=True)
    assert made.read_bytes() == BUNDLE.read_bytes()
    assert made.read_text(encoding="utf-8").count("MIT License") >= 1
