"""The exit codes of commands, and which error has which."""

from cragside.domain.errors import (
    ConfigurationError,
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
    """Return the exit code for an error."""
    if isinstance(error, (ServiceUnavailable, DeadlineExceeded)):
        return UNAVAILABLE
    return BAD_INPUT if isinstance(error, (ValidationError, ConfigurationError)) else FAILED
