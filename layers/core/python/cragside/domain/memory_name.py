"""Where the exchanges of a workspace are kept: in a store of their own, which no client can name."""

from cragside.domain.workspace_name import workspace_name

# No name of a workspace that a client or a setting may give has this character.
_MEMORY = "~memory"


def memory_of(workspace: str) -> str:
    """The name under which the exchanges of a workspace are stored."""
    return f"{workspace}{_MEMORY}"


def is_memory(name: str) -> bool:
    """Whether a name is that of a workspace's exchanges."""
    return name.endswith(_MEMORY)


def owner_of(name: str) -> str:
    """The workspace that a store belongs to: its own name for documents, the owner's for exchanges."""
    return name.removesuffix(_MEMORY)


def store_name(given: object) -> str:
    """The name of a workspace, or of its exchanges, in lower case. Raises `ValidationError` for what is neither."""
    if isinstance(given, str) and is_memory(given):
        return memory_of(workspace_name(owner_of(given)))
    return workspace_name(given)


def spoken(name: str) -> str:
    """A store's name as people are told it."""
    return f"{owner_of(name)} (its memory)" if is_memory(name) else name
