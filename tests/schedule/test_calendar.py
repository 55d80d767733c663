"""The calendar against a plain sorted list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.schedule import calendar
from raydp_sim.schedule.calendar import Arrivals, Calendar


def rows(times, clients):
    count = len(times)
    return Arrivals(
        np.array(times, float),
        np.array(clients, np.uint32),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
    )


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 60)), max_size=12),
    st.sampled_from([1, 2, 5, 4096]),
)
def test_pops_come_in_order_and_nothing_is_lost(steps, near):
    before, calendar._NEAR = calendar._NEAR, near
    try:
        book, plain, number = Calendar(), [], 0
        for times, until in steps:
            clients = range(number, number + len(times))
            number += len(times)
            book.push(rows(times, clients))
            plain = sorted([*plain, *zip(map(float, times), clients, strict=True)])
            expected = [entry for entry in plain if entry[0] <= until]
            found = book.until(until)
            assert list(zip(found.time, found.client.tolist(), strict=True)) == expected
            book.drop(until)
            plain = plain[len(expected) :]
            assert len(book) == len(plain)
            left = calendar.joined(list(book.parts())).in_order()
            assert list(zip(left.time, left.client.tolist(), strict=True)) == plain
    finally:
        calendar._NEAR = before
