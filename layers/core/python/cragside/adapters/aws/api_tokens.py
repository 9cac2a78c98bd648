"""The API's tokens in the text of a secret."""

import re

from cragside.adapters.aws.secrets import UnfitSecret

_MOST = 2
# What RFC 6750 lets a bearer token have. Anything else is a list, quotes or JSON rather than a token.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,1024}")


def api_tokens(text: str) -> tuple[str, ...]:
    """The token, or two while one is exchanged for the other: a line each. Blank lines are none.

    Raises `UnfitSecret` for what is probably a mistake: no token, more than two, JSON, a list in one line.
    """
    tokens = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not tokens:
        raise UnfitSecret("it holds no token")
    if text.strip().startswith("{"):
        raise UnfitSecret("it holds JSON; write the token alone, or two tokens on a line each")
    if len(tokens) > _MOST:
        raise UnfitSecret(f"it holds more than {_MOST} tokens")
    if not all(_TOKEN.fullmatch(token) for token in tokens):
        problem = "a token has a character other than letters, digits and -._~+/=, or more than 1,024 of them"
        raise UnfitSecret(f"{problem}; write two tokens on a line each")
    return tokens
