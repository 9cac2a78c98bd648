"""All errors, as one tree. Only entrypoints turn a code into a status or an exit code.

CragsideError
├── ValidationError        validation_error      the input is wrong; the message says what to do
│   ├── PayloadTooLarge    payload_too_large
│   └── UnsupportedMediaType  unsupported_media_type  the body is of a type that the route does not read
├── ConfigurationError     service_unavailable   the settings or the store are wrong, not the request
│   └── ReadOnlyStore      validation_error      a baked store cannot be written
├── Unauthorized           unauthorized
├── Forbidden              forbidden             the token or the origin does not allow this
├── NotFound               not_found
├── ServiceUnavailable     service_unavailable   a component is down; retryable
│   └── InputRefused       service_unavailable   a component works, but not for this input
├── DeadlineExceeded       timeout_error         the time budget is spent; retryable
└── ProcessingError        processing_error      our own fault
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class CragsideError(Exception):
    """Carries a code of the error contract, a message for a human and optional details without secrets.

    Clients see message and details, so these name no path and no host. The `place` is for the operator: only the log
    and the command line show it.
    """

    code: ClassVar[str] = "processing_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details
        self.place = ""

    def at(self, place: object) -> Self:
        """Set the place where the error happened."""
        self.place = str(place)
        return self

    @property
    def where(self) -> str:
        """Its place, or the place of its cause."""
        error, seen = self, set[int]()
        while not error.place and isinstance(error.__cause__, CragsideError) and id(error) not in seen:
            seen.add(id(error))  # causes may lead in a circle
            error = error.__cause__
        return error.place

    @property
    def message_with_place(self) -> str:
        """The message with its place."""
        return f"{self.message} [{self.where}]" if self.where else self.message


class ValidationError(CragsideError):
    """The input is invalid. The message names the field and the remedy."""

    code = "validation_error"


class PayloadTooLarge(ValidationError):
    """The input is longer than the named limit."""

    code = "payload_too_large"


class UnsupportedMediaType(ValidationError):
    """The body's `Content-Type` is not one that the route reads."""

    code = "unsupported_media_type"


class ConfigurationError(CragsideError):
    """A setting or a store does not fit the request. The message says what to do.

    It is for the operator: no other component takes over, and clients do not see it, because it names places.
    """

    code = "service_unavailable"
    retryable = True

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, component="configuration", **details)


class ReadOnlyStore(ConfigurationError):
    """A write to a baked store. Clients see the message, without the store's place."""

    code = "validation_error"
    retryable = False


class Unauthorized(CragsideError):
    """No token, or a wrong one."""

    code = "unauthorized"


class Forbidden(CragsideError):
    """The token, or the origin of the request, does not allow this.

    `details` name the missing `scope` or the exceeded `limit`.
    """

    code = "forbidden"


class NotFound(CragsideError):
    """The named thing does not exist."""

    code = "not_found"


class ServiceUnavailable(CragsideError):
    """A component did not answer, or its answer is invalid. `component` is `grader`, `search`, `knowledge_base`, ..."""

    code = "service_unavailable"
    retryable = True

    def __init__(self, component: str, reason: str, **details: Any) -> None:
        super().__init__(reason, component=component, **details)
        self.component = component


class InputRefused(ServiceUnavailable):
    """A component works, but refuses this input, or its answer cannot be used. Asking again brings the same."""


class DeadlineExceeded(CragsideError):
    """The request's time budget is spent."""

    code = "timeout_error"
    retryable = True


class ProcessingError(CragsideError):
    """An unexpected failure inside cragside."""
