"""Texts of a certain form, which an error describes in words."""

import re

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

FORM = "form"
NOT = "it is not"


def form(pattern: str, words: str) -> AfterValidator:
    """Accepts texts that the whole pattern matches. `words` say what they are, such as `an e-mail address`."""
    fits = re.compile(pattern).fullmatch

    def checked(said: str) -> str:
        if not fits(said):
            raise unfit(words)
        return said

    return AfterValidator(checked)


def unfit(words: str) -> PydanticCustomError:
    """The error of a value that is not what the words describe."""
    return PydanticCustomError(FORM, f"{NOT} {words}")
