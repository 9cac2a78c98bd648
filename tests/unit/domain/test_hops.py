import pytest

from cragside.domain import hops

OTHER = "0123456789abcdef"


def test_a_request_with_our_mark_has_been_here() -> None:
    assert hops.is_loop(hops.marked())
    assert hops.is_loop(f"{OTHER},{hops.marked()} , {OTHER}")


@pytest.mark.parametrize("header", ["", ",", OTHER, f"{OTHER}, {OTHER[::-1]}", f"x{OTHER}", "é" * 16])
def test_a_request_with_other_marks_or_none_has_not(header: str) -> None:
    assert not hops.is_loop(header)


def test_a_request_may_pass_through_eight_others() -> None:
    assert not hops.is_loop(", ".join([OTHER] * 8))
    assert hops.is_loop(", ".join([OTHER] * 9))


def test_what_is_sent_for_a_request_carries_its_marks_on() -> None:
    own = hops.marked()
    with hops.answering(f" {OTHER} "):
        assert hops.marked() == f"{OTHER}, {own}"
    assert hops.marked() == own


def test_what_is_no_mark_goes_no_further() -> None:
    own = hops.marked()
    with hops.answering(f"x\r\ny: z, é, {OTHER.upper()}, {OTHER}"):
        assert hops.marked() == f"{OTHER}, {own}"
