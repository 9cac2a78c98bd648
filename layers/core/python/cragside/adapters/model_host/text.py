"""Prepares texts for a model."""


def sendable(text: str) -> str:
    """The text without lone surrogates, which JSON may carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def json_in(answer: str) -> str:
    """The JSON object of an answer, without the fence or the words around it."""
    start, end = answer.find("{"), answer.rfind("}")
    return answer[start : end + 1] if 0 <= start < end else answer


def abridged(text: str, characters: int) -> str:
    """The beginning and the end of a long text. In a long prompt, one of them has the question."""
    if len(text) <= characters:
        return text
    half = (characters - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
