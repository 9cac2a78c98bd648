"""The baked store of a function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aws_cdk import Aws
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_lambda import Code, LayerVersion
from constructs import Construct

from infra.constructs.bundling import readable
from infra.constructs.exceptions import acknowledge

_FOLDER = "knowledge"
_NO_STORE = "/tmp/knowledge"  # noqa: S108 - the only folder that a function may write to


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The variables, layers and permission that a function needs to open a store."""

    variables: Mapping[str, str]
    layers: tuple[LayerVersion, ...] = ()
    grant_read: Callable[[Role], None] = field(default=lambda _: None)


def no_knowledge() -> Knowledge:
    """No store: every `/rag` prompt finds an empty knowledge base."""
    return Knowledge({"RAG_HOME": _NO_STORE})


def layer_knowledge(scope: Construct, name: str, folder: Path) -> Knowledge:
    """The baked store in this folder as a layer."""
    code = Code.from_asset(str(folder), bundling=readable(folder, _FOLDER))
    layer = LayerVersion(scope, name, code=code, description="cragside: a baked store")
    return Knowledge({"RAG_HOME": f"/opt/{_FOLDER}"}, (layer,))


def bucket_knowledge(uri: str, sha256: str) -> Knowledge:
    """The baked store at `s3://bucket/prefix`, whose manifest has this hash."""
    place = uri.removeprefix("s3://")
    objects = f"arn:{Aws.PARTITION}:s3:::{place}/*"

    def grant_read(role: Role) -> None:
        role.add_to_policy(PolicyStatement(actions=["s3:GetObject"], resources=[objects]))
        acknowledge(
            role,
            f"AwsSolutions::AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{place}/*]",
            "The manifest names the files of the store; all of them lie under this prefix.",
        )

    return Knowledge({"RAG_HOME": uri, "RAG_HOME_SHA256": sha256}, grant_read=grant_read)
