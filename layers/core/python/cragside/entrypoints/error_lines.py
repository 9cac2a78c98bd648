"""Errors and addresses as an operator reads them."""

from urllib.parse import urlsplit

from cragside.domain.errors import CragsideError, ServiceUnavailable


def message_of(error: Exception) -> str:
    """One line for a person. Only our own messages and the system's are shown, as others may contain secrets."""
    if isinstance(error, ServiceUnavailable):
        message = error.message_with_place
        names_it = message.lower().startswith(f"the {error.component.replace('_', ' ')} ")
        return one_line(message if names_it else f"{error.component}: {message}")
    if isinstance(error, CragsideError):
        return one_line(error.message_with_place)
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return f"something inside failed ({type(error).__name__}); cragside --debug shows where"


def address_of(url: str | None) -> str:
    """An address without its credentials; "" if there is none."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""


def one_line(text: str) -> str:
    """A text without line breaks and repeated blanks."""
    return " ".join(text.split())
