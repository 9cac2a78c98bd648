"""Why a build ends."""


class BuildError(Exception):
    """Why there is no layer, and what to do."""
