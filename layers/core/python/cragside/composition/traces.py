"""The tracer of RAG_TRACES."""

from typing import TYPE_CHECKING

from cragside import __version__
from cragside.domain.errors import ConfigurationError
from cragside.ports.clock import Clock

if TYPE_CHECKING:
    from cragside.adapters.otel import OtelTracer


def tracer_of(clock: Clock) -> "OtelTracer":
    """A tracer that sends spans to an OpenTelemetry collector. Raises `ConfigurationError`."""
    try:
        from cragside.adapters.otel import OtelTracer  # the SDK reads some of its variables when it is imported

        return OtelTracer(__version__, clock=clock)
    except ModuleNotFoundError as error:
        missing = f"RAG_TRACES is set, but {error.name} is not installed. Install the extra `otel` of cragside."
        raise ConfigurationError(missing, variable="RAG_TRACES") from error
    except ValueError as error:
        unfit = "RAG_TRACES is set, but a variable that begins with OTEL_ has a value that OpenTelemetry does not take"
        raise ConfigurationError(f"{unfit}. Correct it, or unset it.", variable="RAG_TRACES") from error
