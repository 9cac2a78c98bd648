"""Delimiters that no quoted text can forge: each carries a random code of the request."""

import secrets

# No vowels and nothing that looks like something else: a code is no word.
_ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
_LENGTH = 6


def new_code() -> str:
    """A code that no text can know ahead of the request: one of 380 million."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


def quoted(name: str, text: str, code: str, **attributes: object) -> str:
    """The text on lines of its own between `<name-code>` and `</name-code>`.

    The text has to be neutral already: see `domain.neutral`.
    """
    stated = "".join(f' {attribute}="{value}"' for attribute, value in attributes.items())
    return f"<{name}-{code}{stated}>\n{text}\n</{name}-{code}>"
