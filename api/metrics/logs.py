"""Configures logging: one JSON object per line, or plain text."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from tonlake.api.settings import LogSettings

REQUESTS = "tonlake.requests"
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, and request fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a newline."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure_logs(settings: LogSettings) -> None:
    """Log warnings, and requests if enabled, to stderr in the configured format.

    The web server's own loggers propagate to the root logger.
    """
    handler = logging.StreamHandler(sys.stderr)
    is_json = settings.format == "json"
    handler.setFormatter(JsonFormatter() if is_json else logging.Formatter(TEXT))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    logging.getLogger(REQUESTS).setLevel(logging.INFO if settings.requests else logging.WARNING)
