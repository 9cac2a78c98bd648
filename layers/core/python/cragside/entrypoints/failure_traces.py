"""Stack traces for logs."""

import traceback

_MOST_CAUSES = 5


def trace_of(error: BaseException | None) -> str:
    """The stack traces and types of an exception and its causes, without their messages: these may quote a request."""
    shown: list[str] = []
    while error is not None and len(shown) < _MOST_CAUSES:
        shown.append("".join(traceback.format_tb(error.__traceback__)) + type(error).__qualname__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\ncaused by\n".join(shown)
