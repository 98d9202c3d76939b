"""How the service logs: a JSON object a line for machines, or text for people."""

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
    """Writes a record as one JSON object: time, level, name, text, and a request's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its end."""
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
    """Send warnings, and requests where they are to be logged, to stderr in the chosen form.

    The server's own loggers write where everything else does.
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
