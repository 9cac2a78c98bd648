"""Texts on their way to a model: their length in tokens, and what is left out of a long one."""


def sendable(text: str) -> str:
    """The text without lone surrogates, which JSON may carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def estimated_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few: three UTF-8 bytes each (English has 4.2, Chinese about 3)."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def abridged(text: str, characters: int) -> str:
    """A long text's beginning and end: in a long prompt, what is asked stands at either."""
    if len(text) <= characters:
        return text
    half = (characters - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
