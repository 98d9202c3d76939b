"""The way to spans: OpenTelemetry is loaded only if ``[metrics] otel_endpoint`` is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.errors import SettingsError

if TYPE_CHECKING:
    from tonlake.api.metrics.spans import Spans


def open_spans(endpoint: str) -> Spans | None:
    """Return what sends spans to a collector; None where there is no endpoint.

    Raises:
        SettingsError: the extra [otel] is not installed.
    """
    if not endpoint:
        return None
    try:
        from tonlake.api.metrics.spans import Spans  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SettingsError(
            f"setting [metrics] otel_endpoint needs tonlake's extra [otel] ({error}): "
            "pip install 'tonlake[otel]'"
        ) from error
    return Spans(endpoint)
