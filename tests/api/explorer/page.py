"""Pages as a reader of HTML sees them, with the checks that hold for all of them."""

import base64
import re
from html.parser import HTMLParser
from typing import Any

import httpx
from litestar.testing import TestClient

VOID = frozenset({"meta", "link", "input", "img", "br", "hr", "source"})
BARE = frozenset({"path", "rect"})
"""Parts of pictures that may close themselves."""


class Page(HTMLParser):
    """Reads a page: its links, what it loads, its words; refuses tags that do not match."""

    def __init__(self, text: str) -> None:
        """Read the whole page."""
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag == "a":
            self.links.append(found["href"] or "")
        for name in ("src", "href", "action", "data-live"):
            if name in found and tag != "a":
                self.loads.append(found[name] or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert tag in BARE | VOID

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


class Walker:
    def __init__(self, client: TestClient[Any]) -> None:
        self.client = client

    def __call__(self, path: str, status: int = 200, **params: str) -> Page:
        """Return a page, after checking what holds for all of them."""
        answer = self.client.get(path, params=params or None)
        assert answer.status_code == status, (path, answer.text)
        _check_headers(answer)
        page = Page(answer.text)
        for each in (*page.links, *page.loads):
            assert each.startswith(("/", "#")), each
            assert not each.startswith("//"), each
        ids = [attrs["id"] for _tag, attrs in page.tags if "id" in attrs]
        assert len(ids) == len(set(ids))
        return page


def _check_headers(answer: httpx.Response) -> None:
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=", answer.text)


def to_hex(text: str) -> str:
    return base64.b64decode(text).hex()
