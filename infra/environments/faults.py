"""Faults in the fields of an environment, in words that need no knowledge of pydantic."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from infra.environments.forms import FORM
from infra.environments.kinds import KIND

_LONGEST = 60
_MESSAGES = {"missing": "it is missing", "extra_forbidden": "there is no such field"}
# What a value should have been, by the type of pydantic's error, with what the error says of the limits.
_WANTED = {
    "literal_error": "{expected}",
    "string_type": "a text, which stands between quotes",
    "string_too_short": "a text with something in it",
    "too_short": "a list of at least {min_length}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "a table"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
}


def field_problems(error: ValidationError) -> str:
    """Return the faults, a line for each field: the given value, and the allowed ones."""
    return "\n".join(f"{_path(problem)}: {_what(problem)}" for problem in error.errors(include_url=False))


def _what(problem: ErrorDetails) -> str:
    if problem["type"] in (FORM, KIND):
        return f"{_given(problem)} {problem['msg'].removeprefix('it ')}"
    if wanted := _WANTED.get(problem["type"]):
        return f"{_given(problem)} is not {wanted.format(**problem.get('ctx', {}))}"
    return _MESSAGES.get(problem["type"], problem["msg"].removeprefix("Value error, "))


def _given(problem: ErrorDetails) -> str:
    value = problem["input"]
    if _may_be_secret(problem["loc"], value):
        return "what is given"
    shown = repr(value) if isinstance(value, str) else _toml(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _toml(value: Any) -> str:
    return "a table" if isinstance(value, Mapping) else json.dumps(value, default=str, ensure_ascii=False)


def _may_be_secret(loc: tuple[int | str, ...], value: object) -> bool:
    """Somebody may have written the secret where its ARN belongs, or an address with a password."""
    return str(loc[-1]).endswith("_secret_arn") or loc[0] == "settings" or ("@" in str(value) and "://" in str(value))


def _path(problem: ErrorDetails) -> str:
    return ".".join(str(part) for part in problem["loc"] if not str(part).startswith("<")) or "environment"
