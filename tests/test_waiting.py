"""What a server's Retry-After says. [BUGS B07]"""

from hopling.waiting import asked_wait_s


def test_a_date_counts_from_the_replys_own_date() -> None:
    """RFC 9110: an HTTP date; this machine's clock may differ from the server's."""
    headers = {
        "Date": "Mon, 02 Nov 2026 10:00:00 GMT",
        "Retry-After": "Mon, 02 Nov 2026 10:00:30 GMT",
    }
    assert asked_wait_s(headers, 1.0) == 30.0


def test_what_cannot_be_read_or_is_past_asks_for_no_more() -> None:
    """Ours: the caller's own pause stands where the server's word is unreadable."""
    assert asked_wait_s({"Retry-After": "soon"}, 2.0) == 2.0
    past = {
        "Date": "Mon, 02 Nov 2026 10:00:00 GMT",
        "Retry-After": "Mon, 02 Nov 2026 09:00:00 GMT",
    }
    assert asked_wait_s(past, 2.0) == 0.0
