"""Delimiters that no quoted text can forge: each carries a random code of the request."""

import hashlib
import re
import secrets

# Without vowels no code is a word. Characters that look like others are left out.
_ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
CODE_LENGTH = 6
_SECRET = secrets.token_bytes(32)

_OPENING = re.compile(r"^<(?:evidence|memory)-(\w{6})>$", re.MULTILINE)
_CLOSING = re.compile(r"^</(?:evidence|memory)-(\w{6})>$", re.MULTILINE)


def new_code() -> str:
    """A random code. A guess is right at most once in 280 million."""
    return _spelt(secrets.token_bytes(CODE_LENGTH))


def code_for(text: str) -> str:
    """A code that is equal for equal texts while the process lives, so that equal prompts get equal answers.

    It depends on the text and a secret of the process, so the author of the text cannot know it.
    """
    return _spelt(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_SECRET, digest_size=CODE_LENGTH).digest())


def _spelt(data: bytes) -> str:
    return "".join([_ALPHABET[byte % len(_ALPHABET)] for byte in data])


def quoted(name: str, text: str, code: str, **attributes: object) -> str:
    """The text between the lines `<name-code>` and `</name-code>`. It must be neutral: see `domain.neutral`."""
    stated = "".join(f' {attribute}="{value}"' for attribute, value in attributes.items())
    return f"<{name}-{code}{stated}>\n{text}\n</{name}-{code}>"


def behind_blocks(text: str) -> str:
    """The part of a prompt after its last block of evidence or memory; the whole prompt if there is no block."""
    opened = {found[1] for found in _OPENING.finditer(text)}
    ends = [found.end() for found in _CLOSING.finditer(text) if found[1] in opened]
    return text[ends[-1] :].lstrip("\n") if ends else text
