"""Bodies with millions of small values, which would keep the event loop busy for seconds."""

import pytest

from cragside.domain.errors import ValidationError
from cragside.entrypoints.http.request_bodies import MOST_KEYS, MOST_VALUES, bounded

_MANY = MOST_VALUES + 1


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize(
    "item",
    [b"[]", b"{}", b'""', b"0", b"1.5", b'"\\""', b'"\\\\"', b'"a,b"'],
    ids=["lists", "objects", "strings", "numbers", "floats", "quotes", "backslashes", "commas"],
)
def test_a_body_with_too_many_values_is_refused(item: bytes) -> None:
    with pytest.raises(ValidationError, match="values"):
        bounded(b'{"a":[' + b",".join([item] * _MANY) + b"]}")


@pytest.mark.attack("exhausted resources")
def test_a_body_with_too_many_keys_is_refused() -> None:
    with pytest.raises(ValidationError, match="keys"):
        bounded(b"{" + b",".join(b'"%d":0' % n for n in range(MOST_KEYS + 1)) + b"}")


@pytest.mark.parametrize("text", [b",", b"[", b"{", b":", b'\\"', b"\\\\", b'\\\\\\",'])
def test_punctuation_within_a_json_string_is_not_counted(text: bytes) -> None:
    body = b'{"prompt":"' + text * _MANY + b'"}'

    assert bounded(body) is body
