"""Settings of services under test, by section; ``patient`` ones suit a slow machine."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from tonlake.api.settings import Settings

LIMITS: dict[str, dict[str, Any]] = {
    "http": {"query_timeout_ms": 60_000, "request_wait_ms": 60_000},
    "tvm": {"wall_ms": 60_000},
    "sql": {"timeout_ms": 60_000},
}


def compose(**sections: dict[str, Any]) -> Settings:
    """Return settings that override the defaults: ``compose(http={"port": 1})``."""
    return msgspec.convert(sections, Settings)


def vary(settings: Settings, **sections: dict[str, Any]) -> Settings:
    """Return ``settings`` with other values: ``vary(SETTINGS, http={"port": 1})``."""
    changed = {
        name: msgspec.structs.replace(getattr(settings, name), **values)
        for name, values in sections.items()
    }
    return msgspec.structs.replace(settings, **changed)


def patient(**sections: dict[str, Any]) -> Settings:
    """Return settings as ``compose`` does, with generous limits unless overridden."""
    names = LIMITS.keys() | sections.keys()
    return compose(**{name: LIMITS.get(name, {}) | sections.get(name, {}) for name in names})


PATIENT = patient()


def wait_for(ask: Callable[[], Any], limit_s: float = 240.0) -> Any:
    """Return the first true value of a function; the limit only keeps a fault from hanging."""
    until_s = time.monotonic() + limit_s
    while not (found := ask()):
        assert time.monotonic() < until_s, "it did not come about"
        time.sleep(0.05)
    return found
