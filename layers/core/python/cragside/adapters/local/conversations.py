"""The last conversation with each workspace, in a file that only its user can read."""

import json
from collections.abc import Sequence
from pathlib import Path

from cragside.application.answerer import Message
from cragside.databases.private_files import make_folder, replace_file
from cragside.domain.errors import ServiceUnavailable, ValidationError

# Older messages are forgotten: Ollama would drop what exceeds the model's window without a word.
MOST_MESSAGES = 20


class Conversations:
    """Keeps questions and answers without their evidence, below the folder of the workspaces."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def last(self, workspace: str) -> list[Message]:
        """Return the messages of the last conversation, `{"role", "content"}` each. Raises `ValidationError`."""
        try:
            kept = json.loads(self._file(workspace).read_text("utf-8"))
            return [{"role": str(turn["role"]), "content": str(turn["content"])} for turn in kept]
        except FileNotFoundError:
            raise ValidationError("There is no conversation to continue. Ask without --continue first.") from None
        except OSError as error:
            raise ServiceUnavailable("conversation", f"It cannot be read: {error.strerror}.").at(self._home) from error
        except (ValueError, TypeError, KeyError):
            raise ValidationError("The last conversation is damaged. Ask without --continue to replace it.") from None

    def keep(self, workspace: str, messages: Sequence[Message]) -> None:
        """Replace the last conversation. Raises `ServiceUnavailable`."""
        try:
            make_folder(self._home)
            replace_file(self._file(workspace), json.dumps([dict(each) for each in messages[-MOST_MESSAGES:]]))
        except OSError as error:
            raise ServiceUnavailable("conversation", f"It cannot be kept: {error.strerror}.").at(self._home) from error

    def forget(self, workspace: str) -> None:
        """Remove the last conversation, if there is one. Raises `ServiceUnavailable`."""
        try:
            self._file(workspace).unlink(missing_ok=True)
        except OSError as error:
            raise ServiceUnavailable("conversation", f"It cannot be removed: {error.strerror}.").at(
                self._home
            ) from error

    def _file(self, workspace: str) -> Path:
        # A leading dot: no workspace can have this name.
        return self._home / f".conversation-{workspace}.json"
