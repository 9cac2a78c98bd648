"""Delimiters that no quoted text can forge: each carries a random code of the request."""

import hashlib
import re
import secrets

# No vowels and nothing that looks like something else: a code is no word.
_ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
CODE_LENGTH = 6
_SECRET = secrets.token_bytes(32)

_OPENING = re.compile(r"^<(?:evidence|memory)-(\w{6})>$", re.MULTILINE)
_CLOSING = re.compile(r"^</(?:evidence|memory)-(\w{6})>$", re.MULTILINE)


def new_code() -> str:
    """A code that no text can know ahead of the request: a guess is right once in 280 million at best."""
    return _spelt(secrets.token_bytes(CODE_LENGTH))


def code_for(text: str) -> str:
    """A code for prompts whose answer has to be the same each time: as long as the process lives, a text has the same.

    It comes from the text and a secret of the process, so whoever writes the text does not know it.
    """
    return _spelt(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_SECRET, digest_size=CODE_LENGTH).digest())


def _spelt(data: bytes) -> str:
    return "".join([_ALPHABET[byte % len(_ALPHABET)] for byte in data])


def quoted(name: str, text: str, code: str, **attributes: object) -> str:
    """The text on lines of its own between `<name-code>` and `</name-code>`.

    The text has to be neutral already: see `domain.neutral`.
    """
    stated = "".join(f' {attribute}="{value}"' for attribute, value in attributes.items())
    return f"<{name}-{code}{stated}>\n{text}\n</{name}-{code}>"


def behind_blocks(text: str) -> str:
    """What of a prompt follows the last block of evidence or of memory in it: the whole text when there is none."""
    opened = {found[1] for found in _OPENING.finditer(text)}
    ends = [found.end() for found in _CLOSING.finditer(text) if found[1] in opened]
    return text[ends[-1] :].lstrip("\n") if ends else text
