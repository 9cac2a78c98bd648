"""LiteLLM's proxy server, in front of cragside."""

import json
import secrets
from pathlib import Path

from tests.hosts import packages
from tests.services.server import Server


class LiteLlmProxy(Server):
    """It passes the models `m` and `missing` on to the routes in OpenAI's form at an address."""

    start_seconds = 240.0  # it imports for 20 seconds where nothing else runs

    def __init__(self, python: Path, address: str) -> None:
        super().__init__("litellm", "/health/liveliness")
        self._python = python
        self.key = f"sk-{secrets.token_hex(32)}"  # it refuses to start with a weak one
        how = {"api_base": f"{address}/v1", "api_key": "none", "max_retries": 0}
        models = [{"model_name": n, "litellm_params": {"model": f"openai/{n}", **how}} for n in ("m", "missing")]
        settings = {"drop_params": True, "num_retries": 0, "telemetry": False}
        # One error would otherwise keep it from asking again for a while.
        routing = {"disable_cooldowns": True}
        configuration = {"model_list": models, "litellm_settings": settings, "router_settings": routing}
        (self.home / "config.yaml").write_text(json.dumps(configuration))

    def version(self) -> str:
        """Its version."""
        return f"litellm {packages.version('litellm', node=False)}"

    def command(self) -> list[str]:
        """The program."""
        listen = ["--host", "127.0.0.1", "--port", str(self.port), "--telemetry", "False"]
        return [str(self._python.with_name("litellm")), "--config", str(self.home / "config.yaml"), *listen]

    def environment(self) -> dict[str, str]:
        """No prices from the network, and a home of its own."""
        own = {"HOME": str(self.home), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DISABLE_ADMIN_UI": "True"}
        own["LITELLM_MASTER_KEY"] = self.key
        return super().environment() | own
