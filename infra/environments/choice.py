"""Chooses and changes the environment with pairs `-c KEY=VALUE`."""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from infra.environments import named
from infra.environments.checks import checked
from infra.environments.faults import field_problems
from infra.environments.files import fields_of
from infra.environments.knowledge import Writable, knowledge_of
from infra.environments.model import Environment, NotDeployable

_PLAIN = ("python", "architecture", "account", "region", "emulated")
KEYS = ("env", "file", "knowledge", "destroying", "leaving", *_PLAIN)

# What `python -m infra.pipeline` takes beside.
_OF_PIPELINES = ("repository", "provider")

# For commands that need no more than the environment's name and place, whether it could be deployed as it is or not.
ANY = {"destroying": "true"}


def chosen(context: Mapping[str, str | None]) -> Environment:
    """The environment `env` with what the other keys change of it; a value of None is one that was not said.

    `file` is a TOML file with any fields; the other keys go before it. With `destroying=true`, nothing is checked.

    Raises `NotDeployable`, also when neither the environment nor the context says what the knowledge is: to take
    none for granted would drop what is deployed.
    """
    environment = named(context.get("env"))
    given = {key: value for key in KEYS if (value := context.get(key)) is not None}
    if empty := [key for key, value in given.items() if not value]:
        raise NotDeployable("\n".join(f"{key}: it has no value: say -c {key}=VALUE, or leave it out" for key in empty))
    try:
        changes = fields_of(Path(given["file"])) if "file" in given else {}
        changes |= {key: given[key] for key in _PLAIN if key in given}
        if "knowledge" in given:
            changes["knowledge"] = knowledge_of(given["knowledge"])
        environment = environment.changed(**changes)
    except ValidationError as error:
        raise NotDeployable(field_problems(error)) from error
    if given.get("destroying") == "true":
        # The stacks have to be the same, whether they could be deployed again or not; nothing has to be baked for that.
        return environment if isinstance(environment.knowledge, Writable) else environment.changed(knowledge="none")
    if environment.knowledge is None:
        raise NotDeployable(
            f"{environment.name} names no knowledge: -c knowledge=FOLDER, s3://BUCKET/PREFIX#SHA256, writable or none, "
            "which make takes as ARGS, or a file with -c file=FILE.toml"
        )
    return checked(environment)


def add_context(parser: argparse.ArgumentParser) -> None:
    """Add the option `-c KEY=VALUE`, which can be repeated: `context` becomes a list of pairs."""
    form = "env=dev, knowledge=FOLDER, ..."
    parser.add_argument("-c", "--context", action="append", default=[], type=_pair, metavar="KEY=VALUE", help=form)


def refuse_unknown(keys: Iterable[str]) -> None:
    """Raise `NotDeployable` if one of the keys means nothing here."""
    # Keys of the CDK have a namespace, such as @aws-cdk/core:... or aws:cdk:....
    for key in keys:
        if ":" not in key and "/" not in key and key not in (*KEYS, *_OF_PIPELINES):
            raise NotDeployable(f"{key!r} is not a key. The keys are {', '.join(KEYS)}")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        refuse_unknown([key])
    except NotDeployable as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return key, value
