"""The error of an address that cannot be used."""


class BadAddress(ValueError):
    """An address that does not say where the database is. The message says what to change, and holds no secret."""
