"""What an Ollama host says of a model."""

import re
from dataclasses import dataclass
from typing import Any, TypeGuard

from cragside.adapters.model_host.sizes import parameters_in


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The host's description of a model; empty if the host has no /api/show."""

    context_length: int | None = None
    num_ctx: int | None = None
    capabilities: frozenset[str] | None = None
    parameters: int | None = None

    @property
    def completes(self) -> bool:
        """Whether it writes text. Hosts before 0.6.4 do not say; then it is assumed."""
        return self.capabilities is None or "completion" in self.capabilities

    @property
    def thinks(self) -> bool:
        """Whether it thinks before it answers."""
        return self.capabilities is not None and "thinking" in self.capabilities


def is_number(value: Any) -> TypeGuard[int]:
    """Whether a value of the host's JSON is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def card_of(shown: Any) -> ModelCard:
    """The card in what /api/show answers."""
    if not isinstance(shown, dict):
        return ModelCard()
    info = shown.get("model_info")
    facts = info.items() if isinstance(info, dict) else ()
    lengths = [value for key, value in facts if key.endswith(".context_length") and is_number(value) and value > 0]
    own = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(shown.get("parameters") or ""), re.MULTILINE)
    capabilities = shown.get("capabilities")
    count = info.get("general.parameter_count") if isinstance(info, dict) else None
    details = shown.get("details")
    size = str(details.get("parameter_size") or "") if isinstance(details, dict) else ""
    return ModelCard(
        context_length=lengths[0] if lengths else None,
        num_ctx=int(own.group(1)) if own and int(own.group(1)) > 0 else None,
        capabilities=frozenset(map(str, capabilities)) if isinstance(capabilities, list) else None,
        parameters=count if is_number(count) and count > 0 else parameters_in(size),
    )
