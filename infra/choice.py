"""Chooses and changes the environment with pairs `-c KEY=VALUE`.

As a command, it prints what the layers of an environment are built for: python -m infra.choice -c env=dev.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from infra.artifacts import MissingArtifact, artifacts_of
from infra.checks import checked
from infra.config import Environment, Generations, Indexed, Knowledge, NotDeployable, Writable, named
from infra.fields import Data, field_problems

_PLAIN = ("python", "architecture", "account", "region", "emulated")
KEYS = ("env", "like", "file", "knowledge", "destroying", "leaving", *_PLAIN)

# What `python -m infra.pipeline` takes beside.
_OF_PIPELINES = ("repository", "provider")


def chosen(context: Mapping[str, str | None], *, deploying: bool = True) -> Environment:
    """Return the environment `env` with what the other keys change of it; a value of None is one that was not said.

    `like` names the environment whose values a new name takes. `file` is a TOML file with any fields; the other keys go
    before it. Without `deploying`, or with `destroying=true`, it need not be deployable as it is.

    Raises `NotDeployable`, also when neither the environment nor the context says what the knowledge is: to take
    none for granted would drop what is deployed.
    """
    given = {key: value for key in KEYS if (value := context.get(key)) is not None}
    if empty := [key for key, value in given.items() if not value]:
        raise NotDeployable("\n".join(f"{key}: it has no value: say -c {key}=VALUE, or leave it out" for key in empty))
    try:
        changes = fields_of(Path(given["file"])) if "file" in given else {}
        changes |= {key: given[key] for key in _PLAIN if key in given}
        if "knowledge" in given:
            changes["knowledge"] = knowledge_of(given["knowledge"])
        environment = named(context.get("env"), context.get("like")).changed(**changes)
    except ValidationError as error:
        raise NotDeployable(field_problems(error)) from error
    if not deploying or given.get("destroying") == "true":
        # Nothing has to be baked for that.
        return environment if isinstance(environment.knowledge, Indexed) else environment.changed(knowledge="none")
    if environment.knowledge is None:
        raise NotDeployable(
            f"{environment.name} names no knowledge: -c knowledge=FOLDER, s3://BUCKET/PREFIX#SHA256, generations, "
            "writable or none, which make takes as ARGS, or a file with -c file=FILE.toml"
        )
    return checked(environment)


def fields_of(file: Path) -> dict[str, object]:
    """Return the fields that a TOML file has. Raises `NotDeployable` for a file that cannot be read."""
    try:
        fields = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotDeployable(f"{file} cannot be read: {error}") from error
    if "name" in fields:
        raise NotDeployable(f"{file}: -c env=NAME names the environment, so that no file changes which one it is")
    if isinstance(knowledge := fields.get("knowledge"), str):
        fields["knowledge"] = knowledge_of(knowledge)
    return fields


class _Field(Data):
    """Errors name the field of an environment."""

    knowledge: Knowledge


def knowledge_of(text: str) -> Knowledge:
    """Parse a word, a folder, or `s3://bucket/prefix#sha256`. Raises pydantic's `ValidationError`."""
    words: dict[str, Knowledge] = {"none": "none", "writable": Writable(), "generations": Generations(generations=10)}
    if text in words:
        return words[text]
    if text.startswith("s3://"):
        uri, hash_given, sha256 = text.partition("#")
        table = {"uri": uri} | ({"sha256": sha256} if hash_given else {})
    else:
        table = {"path": text}
    return _Field.model_validate({"knowledge": table}).knowledge


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the options of the build. Return 2 if the environment cannot be deployed. Ignore options of the CDK."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.choice", description="What layers are built for.", allow_abbrev=False
    )
    add_context(parser)
    given, _ = parser.parse_known_args(arguments)
    try:
        environment = chosen(dict(given.context))
        if environment.knowledge != named("dev").knowledge:  # the demo, which is baked next
            artifacts_of(environment).check_knowledge()
    except (NotDeployable, MissingArtifact) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"--python {environment.python} --arch {environment.architecture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
