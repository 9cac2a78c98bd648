"""Describe a deployment, as CloudFormation tells it."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from cragside.adapters.aws.secrets import UnfitSecret, api_tokens
from infra.config import Environment, NotDeployable

P = ParamSpec("P")


class NotDeployed(Exception):
    """The environment has no stack, or one without what was asked for."""


def refusal(error: BotoCoreError | ClientError) -> str:
    """Why AWS did not answer, with a remedy where the configuration is at fault."""
    at_fault = isinstance(error, (NoCredentialsError, NoRegionError, PartialCredentialsError, ProfileNotFound))
    remedy = ". Set credentials and the region, such as with AWS_PROFILE and AWS_REGION" if at_fault else ""
    return f"AWS does not say what is deployed: {str(error).removesuffix('.')}{remedy}"


def telling(command: Callable[P, int]) -> Callable[P, int]:
    """The command; where the environment or AWS is at fault, it says so and returns 2."""

    @wraps(command)
    def answering(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return command(*args, **kwargs)
        except (NotDeployable, NotDeployed) as error:
            print(error, file=sys.stderr)
        except (BotoCoreError, ClientError) as error:
            print(refusal(error), file=sys.stderr)
        return 2

    return answering


def configured(environment: Environment) -> boto3.Session:
    """The credentials of the AWS configuration, in the region that the CDK's command line would take."""
    return boto3.Session(region_name=environment.region or os.environ.get("AWS_REGION"))


def looking(environment: Environment, session: boto3.Session | None = None) -> boto3.Session:
    """The credentials of the bootstrap's role that looks up, in the environment's account; else the caller's own.

    Whoever deploys may have no other right than to assume the bootstrap's roles.
    """
    own = session or configured(environment)
    client = own.client("sts")
    caller = client.get_caller_identity()
    account, partition = environment.account or caller["Account"], caller["Arn"].split(":")[1]
    name = f"cdk-{environment.bootstrap.qualifier}-lookup-role-{account}-{own.region_name}"
    role = f"arn:{partition}:iam::{account}:role/{name}"
    try:
        given = client.assume_role(RoleArn=role, RoleSessionName="cragside")["Credentials"]
    except ClientError:
        return own
    return boto3.Session(
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
        region_name=own.region_name,
    )


class Deployed:
    """The stacks of an environment, with the credentials of the AWS configuration."""

    def __init__(self, environment: Environment, session: boto3.Session | None = None) -> None:
        self._prefix = environment.stack_prefix
        self.session = session or configured(environment)

    def output(self, key: str) -> str:
        """An output of the stack of the service. Raises `NotDeployed`."""
        cloudformation = self.session.client("cloudformation")
        name = f"{self._prefix}service"
        try:
            (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        except cloudformation.exceptions.ClientError as error:
            raise NotDeployed(f"{name}: {error}") from error
        for output in stack.get("Outputs", []):
            if output["OutputKey"] == key:
                return str(output["OutputValue"])
        raise NotDeployed(f"{name} has no output {key}.")

    def token(self) -> str:
        """The API token, from its secret; the first while one is exchanged for another. Raises `NotDeployed`."""
        try:
            secret = self.output("TokenSecret")
        except NotDeployed as error:
            raise NotDeployed(f"{error} Only an API that asks for a token can be asked with one.") from error
        if secret.split(":")[2] == "ssm":
            text = self.session.client("ssm").get_parameter(Name=secret, WithDecryption=True)["Parameter"]["Value"]
        else:
            text = self.session.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"]
        try:
            return api_tokens(text)[0]
        except UnfitSecret as error:
            raise NotDeployed(f"The secret of the token cannot be used: {error}.") from error

    def stacks(self) -> list[str]:
        """The names of all stacks; not those of which there is no more than a set of changes to look at."""
        return [
            stack["StackName"]
            for stack in self._pages("describe_stacks", "Stacks")
            if stack["StackName"].startswith(self._prefix) and stack["StackStatus"] != "REVIEW_IN_PROGRESS"
        ]

    def _pages(self, operation: str, key: str, **query: str) -> Iterator[dict[str, Any]]:
        for page in self.session.client("cloudformation").get_paginator(operation).paginate(**query):
            yield from page[key]
