"""The name of the store with a workspace's exchanges. Clients cannot use this name."""

from cragside.domain.workspace_name import workspace_name

# Names of workspaces cannot contain this character.
_MEMORY = "~memory"


def memory_of(workspace: str) -> str:
    """The name under which the exchanges of a workspace are stored."""
    return f"{workspace}{_MEMORY}"


def is_memory(name: str) -> bool:
    """Whether this is the name of a memory store."""
    return name.endswith(_MEMORY)


def owner_of(name: str) -> str:
    """The workspace that a store of documents or exchanges belongs to."""
    return name.removesuffix(_MEMORY)


def store_name(given: object) -> str:
    """The name of a workspace or of its memory, in lower case. Raises `ValidationError` for an invalid name."""
    if isinstance(given, str) and is_memory(given):
        return memory_of(workspace_name(owner_of(given)))
    return workspace_name(given)


def spoken(name: str) -> str:
    """The name of a store in messages."""
    return f"{owner_of(name)} (its memory)" if is_memory(name) else name
