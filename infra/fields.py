"""Fields of an environment: texts of a certain form, one of several tables, and their faults in words."""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import IPv4Network
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Tag, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

_FORM, _KIND, _NOT = "form", "kind", "it is not"
_CLOSE = 0.5
_LONGEST = 60


class Data(BaseModel):
    """Frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def unfit(words: str) -> PydanticCustomError:
    """Return the error of a value that is not what the words describe."""
    return PydanticCustomError(_FORM, f"{_NOT} {words}")


def form(pattern: str, words: str) -> AfterValidator:
    """Accepts texts that the whole pattern matches. `words` say what they are, such as `an e-mail address`."""
    fits = re.compile(pattern).fullmatch

    def checked(text: str) -> str:
        if not fits(text):
            raise unfit(words)
        return text

    return AfterValidator(checked)


def arn(service: str, resource: str, what: str, shown: str) -> AfterValidator:
    """Accepts ARNs of a service. `resource` is the pattern of their last part, `shown` that part as an example."""
    words = f"the ARN of {what}: arn:aws:{service}:REGION:ACCOUNT:{shown}"
    return form(rf"arn:aws[a-z-]*:{service}:[a-z0-9-]+:\d{{12}}:{resource}", words)


def resource_id(prefix: str, what: str) -> AfterValidator:
    """Accepts ids that EC2 gives."""
    return form(rf"{prefix}-[0-9a-f]{{8,17}}", f"the id of a {what}, such as {prefix}-0123456789abcdef0")


_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SecretArn = Annotated[
    str, arn("secretsmanager", "secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}", "a secret", "secret:NAME-SUFFIX")
]
KeyArn = Annotated[str, arn("kms", rf"key/(mrk-[0-9a-f]{{32}}|{_UUID})", "a key", "key/ID")]
CertificateArn = Annotated[str, arn("acm", f"certificate/{_UUID}", "a certificate", "certificate/ID")]
ParameterName = Annotated[str, form(r"(/[\w.-]+)+", "the name of a parameter, such as /cragside/dev/token")]
TopicArn = Annotated[str, arn("sns", "[A-Za-z0-9_-]+", "a topic", "NAME")]
WebAclArn = Annotated[
    str, arn("wafv2", f"regional/webacl/[A-Za-z0-9_-]+/{_UUID}", "a web ACL", "regional/webacl/NAME/ID")
]
DatabaseUserArn = Annotated[
    str, arn("rds-db", "dbuser:(db|cluster|prx)-[A-Za-z0-9]+/[A-Za-z0-9_]+", "a user of RDS", "dbuser:ID/USER")
]


def _range(cidr: str) -> str:
    try:
        if "/" not in cidr or not IPv4Network(cidr):
            raise ValueError
    except ValueError as error:
        raise unfit("a range of addresses, such as 10.1.0.0/16") from error
    return cidr


Cidr = Annotated[str, AfterValidator(_range)]


def kind(name: str) -> Tag:
    """Marks a member of a union: the name of its class, or a word that stands for itself."""
    return Tag(f"<{name}>")


def one_of(*tables: type[Data], words: tuple[str, ...] = ()) -> Discriminator:
    """Chooses the table that has the most of the fields that were given, so that an error is about that one alone."""

    def chosen(value: object) -> str | None:
        if isinstance(value, tables):
            return kind(type(value).__name__).tag
        if isinstance(value, Mapping):
            return kind(max(tables, key=lambda table: _likeness(table, value)).__name__).tag
        return kind(value).tag if isinstance(value, str) and value in words else None

    names = " or ".join((*(repr(word) for word in words), *(f"a table of {table.__name__}" for table in tables)))
    return Discriminator(chosen, custom_error_type=_KIND, custom_error_message=f"{_NOT} {names}")


def _likeness(table: type[Data], given: Mapping[object, object]) -> float:
    fields = table.model_fields
    return sum(
        1 if name in fields else _CLOSE * bool(get_close_matches(str(name), fields, n=1, cutoff=0.8)) for name in given
    )


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
    if problem["type"] in (_FORM, _KIND):
        return f"{_given(problem)} {problem['msg'].removeprefix('it ')}"
    if wanted := _WANTED.get(problem["type"]):
        return f"{_given(problem)} is not {wanted.format(**problem.get('ctx', {}))}"
    return _MESSAGES.get(problem["type"], problem["msg"].removeprefix("Value error, "))


def _given(problem: ErrorDetails) -> str:
    value: Any = problem["input"]
    if _may_be_secret(problem["loc"], value):
        return "what is given"
    if isinstance(value, Mapping):
        return "a table"
    shown = repr(value) if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _may_be_secret(loc: tuple[int | str, ...], value: object) -> bool:
    """Somebody may have written the secret where its ARN belongs, or an address with a password."""
    return str(loc[-1]).endswith("_secret_arn") or loc[0] == "settings" or ("@" in str(value) and "://" in str(value))


def _path(problem: ErrorDetails) -> str:
    return ".".join(str(part) for part in problem["loc"] if not str(part).startswith("<")) or "environment"
