"""Texts on their way to a model."""


def sendable(text: str) -> str:
    """The text without lone surrogates, which JSON may carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def abridged(text: str, characters: int) -> str:
    """A long text's beginning and end: in a long prompt, what is asked stands at either."""
    if len(text) <= characters:
        return text
    half = (characters - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
