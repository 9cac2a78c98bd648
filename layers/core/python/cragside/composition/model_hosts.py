"""The hosts of models, by the settings."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError, ServiceUnavailable

if TYPE_CHECKING:
    from cragside.adapters.aws.secrets import SecretsManager
    from cragside.adapters.ollama.host import OllamaHost
    from cragside.adapters.openai.host import OpenAIHost
    from cragside.adapters.renewable import Renewable
    from cragside.settings import Settings


def ollama_host(settings: "Settings", address: str, chat_model: str | None = None) -> "OllamaHost":
    """The Ollama at an address."""
    from cragside.adapters.ollama.host import OllamaHost

    return OllamaHost(address, parallel=settings.ollama_parallel, chat_model=chat_model)


def openai_host(settings: "Settings", address: str, key: "Renewable[str]") -> "OpenAIHost":
    """The host with OpenAI's API at an address. Raises `ConfigurationError`."""
    try:
        from cragside.adapters.openai.host import OpenAIHost
    except ModuleNotFoundError as error:
        missing = f"RAG_MODEL_HOST speaks OpenAI's API, but {error.name} is not installed. Install cragside[openai]."
        raise ConfigurationError(missing, variable="RAG_MODEL_HOST") from error
    return OpenAIHost(address, key, parallel=settings.ollama_parallel, chat_model=settings.chat_model)


def openai_key(settings: "Settings", secrets: "Callable[[], SecretsManager]") -> "Renewable[str]":
    """The key of OPENAI_API_KEY or of its secret; "" if there is none. `secrets` is called for a secret alone."""
    name = settings.openai_api_key_secret
    if name is None:
        from cragside.adapters.renewable import renewable

        return renewable(settings.openai_api_key.get_secret_value() if settings.openai_api_key else "")
    from cragside.adapters.aws.secrets import TRUSTED_BY_SERVERS_SECONDS

    return secrets().secret(
        name, setting="OPENAI_API_KEY_SECRET", parse=str.strip, trusted_seconds=TRUSTED_BY_SERVERS_SECONDS
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
