"""Texts of a certain form, which an error describes in words."""

import re

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

FORM = "form"
NOT = "it is not"


def form(pattern: str, words: str) -> AfterValidator:
    """Accepts texts that the whole pattern matches. `words` say what they are, such as `an e-mail address`."""
    fits = re.compile(pattern).fullmatch

    def checked(text: str) -> str:
        if not fits(text):
            raise unfit(words)
        return text

    return AfterValidator(checked)


def unfit(words: str) -> PydanticCustomError:
    """The error of a value that is not what the words describe."""
    return PydanticCustomError(FORM, f"{NOT} {words}")
