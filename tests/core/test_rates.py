"""How often something may be done."""

from app.core.rates import Bucket, Buckets, Rate


def taken(bucket: Bucket, now: float, count: int) -> None:
    for _ in range(count):
        bucket.take(now)


def test_so_many_are_there_at_once_and_then_none() -> None:
    bucket = Bucket(Rate(2.0, 3), now=10.0)
    assert bucket.wait(10.0) == 0.0
    taken(bucket, 10.0, 3)
    assert bucket.wait(10.0) == 0.5


def test_they_come_back_one_by_one() -> None:
    bucket = Bucket(Rate(2.0, 3), now=10.0)
    taken(bucket, 10.0, 3)
    assert [bucket.wait(at) for at in (10.25, 10.5)] == [0.25, 0.0]
    bucket.take(10.5)
    assert bucket.wait(10.5) == 0.5


def test_never_are_there_more_than_at_first() -> None:
    bucket = Bucket(Rate(2.0, 3), now=0.0)
    taken(bucket, 0.0, 3)
    assert [bucket.is_full(at) for at in (1.0, 1.5, 1000.0)] == [False, True, True]
    taken(bucket, 1000.0, 3)
    assert bucket.wait(1000.0) == 0.5


def test_a_clock_that_is_set_back_gives_nothing_and_takes_nothing() -> None:
    bucket = Bucket(Rate(1.0, 1), now=10.0)
    bucket.take(10.0)
    assert bucket.wait(5.0) == 1.0
    assert bucket.wait(6.0) == 0.0


def test_a_rate_below_one_is_slow() -> None:
    bucket = Bucket(Rate(0.25, 1), now=0.0)
    bucket.take(0.0)
    assert [bucket.wait(at) for at in (0.0, 4.0)] == [4.0, 0.0]


def test_each_key_has_its_own() -> None:
    buckets: Buckets[str] = Buckets(Rate(1.0, 1))
    buckets.take("one", 0.0)
    assert [buckets.wait(key, 0.0) for key in ("one", "other")] == [1.0, 0.0]


def test_of_keys_that_are_idle_nothing_is_kept() -> None:
    buckets: Buckets[int] = Buckets(Rate(1.0, 1))
    for number in range(100_000):
        buckets.take(number, float(number))
        assert len(buckets) <= 65
    assert buckets.wait(99_999, 99_999.0) == 1.0


def test_a_key_that_is_not_idle_is_kept_however_many_others_come() -> None:
    buckets: Buckets[int] = Buckets(Rate(0.001, 1))
    for number in range(1000):
        buckets.take(number, 0.0)
    assert [buckets.wait(number, 0.0) for number in (0, 999)] == [1000.0, 1000.0]
