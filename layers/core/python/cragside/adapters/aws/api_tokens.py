"""The API's tokens in the text of a secret."""

from cragside.adapters.aws.secrets import UnfitSecret

_MOST = 2


def api_tokens(text: str) -> tuple[str, ...]:
    """The token, or two while one is exchanged for the other: a line each. Blank lines are none.

    Raises `UnfitSecret` for what is probably a mistake: no token, more than two, JSON, and a token with a blank.
    """
    tokens = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not tokens:
        raise UnfitSecret("it holds no token")
    if text.strip().startswith("{"):
        raise UnfitSecret("it holds JSON; write the token alone, or two tokens on a line each")
    if len(tokens) > _MOST:
        raise UnfitSecret(f"it holds more than {_MOST} tokens")
    if any(not token.isprintable() or " " in token for token in tokens):
        raise UnfitSecret("a token has a blank, or a character that cannot be seen; write two tokens on a line each")
    return tokens
