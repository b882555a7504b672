"""How long a server asks its callers to wait."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def asked_wait_s(headers: Mapping[str, str], default_s: float) -> float:
    """Return the seconds of a reply's Retry-After; a date (RFC 9110) counts from its own Date.

    >>> asked_wait_s({"Retry-After": "7"}, 1.0), asked_wait_s({}, 1.0)
    (7.0, 1.0)
    """
    asked = headers.get("Retry-After", "").strip()
    if asked.isdecimal():
        return float(asked)
    try:
        now = parsedate_to_datetime(headers.get("Date", ""))
        return max(0.0, (parsedate_to_datetime(asked) - now).total_seconds())
    except (ValueError, TypeError):
        return default_s
