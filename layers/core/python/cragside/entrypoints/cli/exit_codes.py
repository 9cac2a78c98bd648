"""The exit code and the message of an exception."""

from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    DeadlineExceeded,
    ServiceUnavailable,
    ValidationError,
)

OK = 0
FAILED = 1
BAD_INPUT = 2
UNAVAILABLE = 3
INTERRUPTED = 130

MEANINGS = {
    OK: "everything was done",
    FAILED: "something failed, or only a part was done",
    BAD_INPUT: "wrong usage, bad input or bad configuration",
    UNAVAILABLE: "a component that is needed is unavailable",
    INTERRUPTED: "interrupted (serve, worker and sync --watch end with 0 once they run)",
}


def exit_code_of(error: Exception) -> int:
    """The exit code for an error."""
    if isinstance(error, (ServiceUnavailable, DeadlineExceeded)):
        return UNAVAILABLE
    return BAD_INPUT if isinstance(error, (ValidationError, ConfigurationError)) else FAILED


def message_of(error: Exception) -> str:
    """One line for a person. Only our own messages and the system's are shown, as others may contain secrets."""
    if isinstance(error, ServiceUnavailable):
        told = error.told_to_operator
        names_it = told.lower().startswith(f"the {error.component.replace('_', ' ')} ")
        return _one_line(told if names_it else f"{error.component}: {told}")
    if isinstance(error, CragsideError):
        return _one_line(error.told_to_operator)
    if isinstance(error, OSError) and error.strerror:
        return _one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return f"something inside failed ({type(error).__name__}); cragside --debug shows where"


def _one_line(text: str) -> str:
    return " ".join(text.split())
