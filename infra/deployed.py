"""What is deployed, as CloudFormation tells it."""

from collections.abc import Iterator
from typing import Any

import boto3

from cragside.adapters.aws.api_tokens import api_tokens
from cragside.adapters.aws.secrets import UnfitSecret
from infra.environments.model import Environment


class NotDeployed(Exception):
    """The environment has no stack, or one without what was asked for."""


class Deployed:
    """The stacks of an environment, with the credentials of the AWS configuration."""

    def __init__(self, environment: Environment, session: boto3.Session | None = None) -> None:
        self.name = environment.name
        self.session = session or boto3.Session(region_name=environment.region)

    def output(self, key: str) -> str:
        """An output of the stack of the service. Raises `NotDeployed`."""
        cloudformation = self.session.client("cloudformation")
        name = f"cragside-{self.name}-service"
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
        secrets = self.session.client("secretsmanager")
        text = secrets.get_secret_value(SecretId=self.output("TokenSecret"))["SecretString"]
        try:
            return api_tokens(text)[0]
        except UnfitSecret as error:
            raise NotDeployed(f"The secret of the token cannot be used: {error}.") from error

    def log_groups(self) -> dict[str, str]:
        """The names of the log groups of all stacks, by the names that the stacks give them. Raises `NotDeployed`."""
        found = {
            f"{stack.removeprefix(f'cragside-{self.name}-')}/{resource['LogicalResourceId']}": resource[
                "PhysicalResourceId"
            ]
            for stack in self._stacks()
            for resource in self._pages("list_stack_resources", "StackResourceSummaries", StackName=stack)
            if resource["ResourceType"] == "AWS::Logs::LogGroup"
        }
        if not found:
            raise NotDeployed(f"No stack cragside-{self.name}-* has a log group.")
        return found

    def _stacks(self) -> list[str]:
        stacks = self._pages("describe_stacks", "Stacks")
        return [stack["StackName"] for stack in stacks if stack["StackName"].startswith(f"cragside-{self.name}-")]

    def _pages(self, operation: str, key: str, **said: str) -> Iterator[dict[str, Any]]:
        for page in self.session.client("cloudformation").get_paginator(operation).paginate(**said):
            yield from page[key]
