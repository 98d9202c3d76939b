"""The frame of every page: ask, render, answer; errors are pages, too."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from litestar import Response
from litestar.handlers import HTTPRouteHandler

from tonlake.api.explorer import body, form, message
from tonlake.api.explorer.names import Names
from tonlake.api.http.lane import in_lane
from tonlake.api.request.call import ApiRequest, Call, open_call, read_arguments
from tonlake.api.request.params import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "tonlake_theme"
FRAGMENT = "_rows.html"
"""How the templates of parts of pages end, which a script asks for again and again."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Cookie",
}
"""What browsers must not do with a page: load from elsewhere, run text as script, be framed."""


_DIRECTIONS = {
    code: f"[U+{code:04X}]"
    for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Marks that change the direction of text: a page shows them, and no text of the chain acts so."""


class Question(msgspec.Struct, frozen=True):
    """What a page is asked: the parts of its path, and the parameters behind it."""

    call: Call
    parts: dict[str, str]
    arguments: Arguments
    names: Names

    def argument(self, name: str) -> str:
        """Return a parameter, or "" where there is none."""
        return self.arguments.last(name) or ""


class Shown(msgspec.Struct):
    """A page: its template, its title, and what it shows."""

    template: str
    title: str
    values: dict[str, Any]
    status: int = 200


class Elsewhere(msgspec.Struct, frozen=True):
    """The page is another one; ``path`` is one of ours."""

    path: str


def page(path: str, answer: Callable[[Question], Shown | Elsewhere]) -> HTTPRouteHandler:
    """Return the route of a page; ``answer`` asks the lake and says what to show."""

    def handle(request: ApiRequest) -> Response[bytes]:
        arguments = read_arguments(request)
        call = open_call(request, arguments)
        parts = {name: str(part) for name, part in request.path_params.items()}
        question = Question(call, parts, arguments, Names(call))
        shown = answer(question)
        if isinstance(shown, Elsewhere):
            headers = {**HEADERS, "Location": shown.path}
            return Response(b"", status_code=HTTPStatus.SEE_OTHER, headers=headers)
        tag = f'"{call.reader.snapshot.number}"'
        if shown.template.endswith(FRAGMENT) and request.headers.get("if-none-match") == tag:
            return Response(b"", status_code=HTTPStatus.NOT_MODIFIED, headers=HEADERS)
        values = {"names": question.names, "notes": list(dict.fromkeys(call.notes))}
        call.notes.clear()
        rendered = render(request, shown, values | _describe_lake(call))
        rendered.headers["ETag"] = tag
        return rendered

    handle.__doc__ = answer.__doc__
    return HTTPRouteHandler(path, http_method=["GET", "HEAD"])(in_lane(handle))


def render(request: ApiRequest, shown: Shown, values: dict[str, Any]) -> Response[bytes]:
    """Return a page as an answer."""
    theme = request.cookies.get(THEME_COOKIE)
    text = (
        load_templates()
        .get_template(shown.template)
        .render(
            {"notes": [], "snapshot": None, "covered": None}
            | values
            | shown.values
            | {
                "title": shown.title,
                "theme": theme if theme in THEMES else THEMES[0],
                "themes": THEMES,
                "here": request.url.path,
                "with_sql": request.app.state.settings.sql.enabled,
            }
        )
    )
    return Response(
        text.translate(_DIRECTIONS).encode(),
        status_code=shown.status,
        media_type="text/html",
        headers=HEADERS,
    )


def _describe_lake(call: Call) -> dict[str, Any]:
    snapshot = call.reader.snapshot
    return {"snapshot": snapshot.number, "covered": snapshot.ranges}


@cache
def load_templates() -> Environment:
    """Return the templates; all they put in is escaped, and a misspelt name is an error."""
    found = Environment(
        loader=PackageLoader("tonlake.api.explorer"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= form.FILTERS | message.FILTERS | body.FILTERS
    return found
