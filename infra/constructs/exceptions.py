"""Exceptions to the rules of cdk-nag and of the CDK itself, each with its reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(where: IConstruct, rule: str, reason: str) -> None:
    """Accept a finding on this construct and those below it. `rule` is its id with the prefix of its tool."""
    Validations.of(where).acknowledge(Acknowledgment(id=rule, reason=reason))
