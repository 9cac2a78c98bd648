"""Clients of AWS. Credentials, region and endpoint come from where AWS' own tools take them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cragside.domain.errors import ConfigurationError, CragsideError, ServiceUnavailable


def make_client(
    service: str, subject: str, *, connect_seconds: int = 3, read_seconds: int, attempts: int = 3, **options: Any
) -> Any:
    """Return a client of boto3. Raises `ConfigurationError`, which names the `subject` that needs it."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ConfigurationError(f"{subject} needs boto3. Install the extra `aws` of cragside.") from error
    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=connect_seconds, read_timeout=read_seconds, retries=retries, **options)
    try:
        return boto3.client(service, config=config)
    except (BotoCoreError, ValueError) as error:  # no region, an unknown profile, an endpoint that is not an address
        raise _unusable(subject, error) from error


class AwsClient:
    """A client that is made at its first use and raises cragside's errors. `options` are those of `make_client`."""

    def __init__(self, service: str, subject: str, *, component: str, **options: Any) -> None:
        self._service = service
        self._subject = subject
        self._component = component
        self._options = options
        self._client: Any = None
        self._making = threading.Lock()  # boto3 cannot make clients in several threads at once

    @contextmanager
    def connected(self, refusal: Callable[[str], CragsideError | None]) -> Iterator[Any]:
        """Return the client. `refusal` maps a code that the service answers to an error; None stands for an outage."""
        with self._making:
            client = self._client = self._client or make_client(self._service, self._subject, **self._options)
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConfigNotFound,
            CredentialRetrievalError,
            NoCredentialsError,
            ParamValidationError,
            PartialCredentialsError,
            ProfileNotFound,
        )

        try:
            yield client
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            raise refusal(code) or self._outage(f"failed ({code[:60]})") from error
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
            raise ConfigurationError(
                f"{self._subject} needs AWS credentials, and none were found. Give the function a role, or set "
                "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            ) from error
        except (ConfigNotFound, ProfileNotFound, ParamValidationError) as error:
            raise _unusable(self._subject, error) from error
        except BotoCoreError as error:
            raise self._outage(f"does not answer ({type(error).__name__})") from error

    def close(self) -> None:
        """Close connections and forget credentials. The next use connects again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _outage(self, what: str) -> ServiceUnavailable:
        return ServiceUnavailable(self._component, f"{self._service.upper()} {what}.").at(self._subject)


def _unusable(subject: str, error: Exception) -> ConfigurationError:
    reason = " ".join(str(error).split()).rstrip(".")[:200]
    return ConfigurationError(f"{subject} cannot be used: {reason}.")
