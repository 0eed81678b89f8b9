"""Rows, and which of them a server's word chooses."""

import pytest

from app.protocol.revisions import ASSUMED, HANDSHAKE, MODERN, NEWEST_HANDSHAKE, REVISIONS, Revision, negotiated


@pytest.mark.parametrize("row", HANDSHAKE, ids=lambda row: row.date)
def test_a_known_version_is_its_own_row(row: Revision) -> None:
    assert negotiated(row.date) is row


@pytest.mark.parametrize("version", [None, "", "2026-07-28", "2025-01-01", "1.0", "draft", "2025-11-25 "])
def test_any_other_version_is_served_by_the_oldest_rules(version: str | None) -> None:
    assert negotiated(version) == Revision("2024-11-05")


def test_each_difference_is_a_column_of_the_revisions_that_have_it() -> None:
    assert [row.date for row in REVISIONS.values() if row.batches] == ["2025-03-26"]
    assert [row.date for row in REVISIONS.values() if row.primes] == ["2025-11-25"]
    assert [row.date for row in REVISIONS.values() if row.disconnect_cancels] == ["2026-07-28"]
    assert [row.date for row in REVISIONS.values() if row.modern] == ["2026-07-28"]


def test_the_rows_are_in_the_order_of_their_dates() -> None:
    dates = [row.date for row in (*HANDSHAKE, MODERN)]
    assert dates == sorted(dates) == list(REVISIONS)
    assert (ASSUMED.date, NEWEST_HANDSHAKE.date) == ("2025-03-26", "2025-11-25")
