import pytest

from cragside.domain.verdict import varied


def told(ranked: str, most: int) -> str:
    """Each letter is a passage of the document of that name."""
    return "".join(varied(ranked, most, str))


@pytest.mark.parametrize(
    ("ranked", "most", "chosen"),
    [
        ("aaaaaaabc", 5, "aaabc"),
        ("aaaabaaac", 5, "aaabc"),
        ("aaaaaaab", 5, "aaaab"),
        ("aaaaaaa", 5, "aaaaa"),
        ("abcdefg", 5, "abcde"),
        ("aab", 5, "aab"),
        ("aab", 1, "a"),
        ("", 5, ""),
    ],
)
def test_one_document_leaves_places_to_others(ranked: str, most: int, chosen: str) -> None:
    assert told(ranked, most) == chosen
