"""Prepares texts for a model."""


def sendable(text: str) -> str:
    """The text without lone surrogates, which JSON may carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def abridged(text: str, characters: int) -> str:
    """The beginning and the end of a long text. In a long prompt, one of them has the question."""
    if len(text) <= characters:
        return text
    half = (characters - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
