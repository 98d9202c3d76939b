"""Errors of object storage in words: what failed, and what can be done about it.

Arrow passes on the text of Amazon's client, whatever the server is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tonlake.lake.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_BUCKET = (
    "there is no such bucket at {endpoint}: make it, or correct the URL or AWS_ENDPOINT_URL"
)
_REGION = "the bucket is in another region: set AWS_REGION"
_REFUSED = (
    "{endpoint} refuses: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN "
    "if it belongs to them, or AWS_PROFILE, of a user that may list, read and write there"
)
_CUT = (
    "{endpoint} cannot be reached, or broke off: check AWS_ENDPOINT_URL and the network, and run "
    "the same command again"
)
_ADVICE = {
    r"NO_SUCH_BUCKET|NoSuchBucket|InvalidBucketName": _NO_BUCKET,
    r"PermanentRedirect|AuthorizationHeaderMalformed|HTTP status 301": _REGION,
    r"ACCESS_DENIED|ACCESS_KEY|SIGNATURE|TOKEN|HTTP status 40[13]|[Cc]redentials": _REFUSED,
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|curlCode|HTTP status 5\d\d|SLOW_DOWN": _CUT,
}
"""What can be done, by what stands in the text of an error; the first that fits."""

_AWS = re.compile(r"AWS Error|curlCode|NoSuchBucket")


def find_endpoint(environment: Mapping[str, str]) -> str | None:
    """Return the URL of the server that the variables of Amazon's tools name; None is Amazon."""
    return environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None


def explain(name: str, text: str, environment: Mapping[str, str]) -> StorageError | None:
    """Return the error to report for a failure at ``name``; None if storage did not cause it."""
    if _AWS.search(text) is None:
        return None
    advice = next(
        (advice for words, advice in _ADVICE.items() if re.search(words, text)), "it failed"
    )
    endpoint = find_endpoint(environment) or "Amazon S3"
    return StorageError(f"{name}: {advice.format(endpoint=endpoint)} ({text.strip()})")
