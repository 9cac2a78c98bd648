"""A bucket for files that are larger than a request may be."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk.aws_iam import Policy, PolicyStatement, Role
from aws_cdk.aws_kms import IKey
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, CorsRule, HttpMethods, LifecycleRule
from constructs import Construct

from infra.constructs.exceptions import acknowledge

_PREFIX = "in"


class UploadBucket(Construct):
    """Private, encrypted, TLS only. What lies there for a day is deleted: a file that was added is not needed again.
    S3 counts the day from the next midnight UTC.

    `origins` are those of web pages that may send files to it.
    """

    def __init__(self, scope: Construct, name: str, *, origins: Sequence[str], key: IKey | None) -> None:
        super().__init__(scope, name)
        cors = CorsRule(allowed_methods=[HttpMethods.POST], allowed_origins=list(origins), allowed_headers=["*"])
        self._bucket = Bucket(
            self,
            "Bucket",
            encryption=BucketEncryption.KMS if key else BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            lifecycle_rules=[
                LifecycleRule(expiration=Duration.days(1), abort_incomplete_multipart_upload_after=Duration.days(1))
            ],
            cors=[cors] if origins else None,
            # Documents are in the database; here are only files that nobody has added yet.
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            self._bucket,
            "AwsSolutions::AwsSolutions-S1",
            "A file lies here between its upload and the request that adds it, which the API's access log has.",
        )

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of a function that offers uploads."""
        return {"RAG_UPLOADS": f"s3://{self._bucket.bucket_name}/{_PREFIX}"}

    @property
    def bucket_name(self) -> str:
        """The bucket's name."""
        return self._bucket.bucket_name

    def grant(self, role: Role) -> None:
        """Let a role of another stack sign forms, and read and remove what was sent."""
        stack = Stack.of(self)
        arn = stack.export_value(self._bucket.bucket_arn)  # the role is in another stack
        actions = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        policy = Policy(
            role,
            "Uploads",
            roles=[role],
            statements=[
                PolicyStatement(actions=actions, resources=[f"{arn}/{_PREFIX}/*"]),
                # Without it, without conditions, S3 tells of missing objects that they are forbidden.
                PolicyStatement(actions=["s3:ListBucket"], resources=[arn]),
            ],
        )
        acknowledge(
            policy,
            f"AwsSolutions::AwsSolutions-IAM5[Resource::{stack.resolve(arn)['Fn::ImportValue']}/{_PREFIX}/*]",
            "Each upload has a random name; all of them lie under this prefix.",
        )
