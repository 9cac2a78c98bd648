"""The hosts of models, by the settings."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.ports.clock import Clock
from cragside.settings import variable_of

if TYPE_CHECKING:
    from cragside.adapters.aws.secrets import SecretsManager
    from cragside.adapters.ollama.host import OllamaHost
    from cragside.adapters.openai import OpenAIHost
    from cragside.adapters.renewable import Renewable
    from cragside.adapters.rerank import RerankEndpoint, RerankGrader
    from cragside.settings import Settings


def ollama_host(
    settings: "Settings", address: str, key: "Renewable[str]", clock: Clock, chat_model: str | None = None
) -> "OllamaHost":
    """The Ollama at an address."""
    from cragside.adapters.ollama.host import OllamaHost

    return OllamaHost(address, key, parallel=settings.ollama_parallel, chat_model=chat_model, clock=clock)


def openai_host(settings: "Settings", address: str, key: "Renewable[str]", clock: Clock) -> "OpenAIHost":
    """The host with OpenAI's API at an address. Raises `ConfigurationError`."""
    try:
        from cragside.adapters.openai import OpenAIHost
    except ModuleNotFoundError as error:
        missing = (
            f"RAG_MODEL_HOST speaks OpenAI's API, but {error.name} is not installed. "
            "Install the extra `openai` of cragside."
        )
        raise ConfigurationError(missing, variable="RAG_MODEL_HOST") from error
    parallel, chat_model = settings.ollama_parallel, settings.chat_model
    return OpenAIHost(address, key, parallel=parallel, chat_model=chat_model, clock=clock)


def rerank_endpoint(settings: "Settings", url: str, key: "Renewable[str]", clock: Clock) -> "RerankEndpoint":
    """The rerank endpoint at an address."""
    from cragside.adapters.rerank import RerankEndpoint

    model, parallel = settings.rerank_model, settings.ollama_parallel
    return RerankEndpoint(url, key, model=model, parallel=parallel, clock=clock)


def rerank_grader(settings: "Settings", endpoint: "RerankEndpoint") -> "RerankGrader":
    """The grader that is a rerank endpoint, calibrated by the settings."""
    from cragside.adapters.rerank import Calibration, RerankGrader

    return RerankGrader(endpoint, Calibration(settings.rerank_scores, *(settings.rerank_calibration or ())))


def model_key(settings: "Settings", field: str, secrets: "Callable[[], SecretsManager]") -> "Renewable[str]":
    """The key in a field or in its secret; "" if there is none. `secrets` is called for a secret alone."""
    name = getattr(settings, f"{field}_secret")
    if name is None:
        from cragside.adapters.renewable import renewable

        key = getattr(settings, field)
        return renewable(key.get_secret_value() if key else "")
    from cragside.adapters.aws.secrets import TRUSTED_BY_SERVERS_SECONDS

    return secrets().secret(
        name, setting=variable_of(f"{field}_secret"), parse=str.strip, trusted_seconds=TRUSTED_BY_SERVERS_SECONDS
    )


def signing(key: "Renewable[str]") -> Callable[[], Awaitable[str]]:
    """What tells a proxy the key. It raises `ServiceUnavailable("model_host", ...)`."""
    from cragside.adapters.renewable import Unreadable

    async def current() -> str:
        try:
            return await key.current()
        except Unreadable as error:
            raise ServiceUnavailable("model_host", str(error)) from error

    return current
