"""Answers in the error contract's form, read back into the errors they stand for."""

from typing import Any

from cragside.domain.errors import (
    CragsideError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    ProcessingError,
    ServiceUnavailable,
    Unauthorized,
    UnsupportedMediaType,
    ValidationError,
)

_BY_CODE: dict[str, type[CragsideError]] = {
    error.code: error
    for error in (
        ValidationError,
        PayloadTooLarge,
        UnsupportedMediaType,
        Unauthorized,
        Forbidden,
        NotFound,
        DeadlineExceeded,
        ProcessingError,
    )
}


def error_of(contract: Any) -> CragsideError | None:
    """The error that an answer in the error contract's form stands for; None when it has not that form."""
    error = contract.get("error") if isinstance(contract, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return None
    code, message = error.get("type"), error["message"]
    given = error.get("details")
    details = {str(k): v for k, v in given.items()} if isinstance(given, dict) else {}
    if code == ServiceUnavailable.code:
        return ServiceUnavailable(str(details.pop("component", "cragside")), message, **_free(details))
    return _BY_CODE.get(str(code), ProcessingError)(message, **_free(details))


def _free(details: dict[str, Any]) -> dict[str, Any]:
    """The details without names that the errors' constructors use themselves."""
    return {name: value for name, value in details.items() if name not in ("self", "message", "component", "reason")}
