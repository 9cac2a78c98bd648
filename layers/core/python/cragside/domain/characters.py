"""Characters that UTF-8 cannot encode."""


def encodable(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair. JSON may carry one, UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
