"""The last conversation with each workspace is kept, in a file that only its user can read."""

from pathlib import Path

import pytest

from cragside.adapters.local.conversations import MOST_MESSAGES, Conversations
from cragside.domain.errors import ServiceUnavailable, ValidationError

TURNS = [{"role": "user", "content": "Wer? \ud83e"}, {"role": "assistant", "content": "Müller"}]


def test_each_workspace_has_its_own_conversation(tmp_path: Path) -> None:
    kept = Conversations(tmp_path / "home")
    kept.keep("a", TURNS)
    kept.keep("b", TURNS[:1])
    assert kept.last("a") == TURNS
    assert kept.last("b") == TURNS[:1]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "home").iterdir()} == {0o600}


def test_a_long_conversation_loses_its_beginning(tmp_path: Path) -> None:
    kept = Conversations(tmp_path)
    turns = [{"role": "user", "content": str(number)} for number in range(MOST_MESSAGES + 5)]
    kept.keep("w", turns)
    assert kept.last("w") == turns[5:]


def test_there_may_be_nothing_to_continue(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="no conversation"):
        Conversations(tmp_path).last("w")


@pytest.mark.parametrize("damage", ["", "{", "3", '[{"role": "user"}]', "[1]"])
def test_a_damaged_file_can_be_replaced(tmp_path: Path, damage: str) -> None:
    kept = Conversations(tmp_path)
    kept.keep("w", TURNS)
    next(tmp_path.iterdir()).write_text(damage)
    with pytest.raises(ValidationError, match="damaged"):
        kept.last("w")
    kept.keep("w", TURNS)
    assert kept.last("w") == TURNS


def test_a_folder_that_cannot_be_written_is_named_to_the_operator(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServiceUnavailable, match="cannot be kept"):
        Conversations(tmp_path / "file").keep("w", TURNS)
