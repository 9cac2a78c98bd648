"""Exceptions to the rules of cdk-nag and of the CDK itself, each with its reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(where: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding on this construct and what is below it; `rule` is its id with the prefix of who says it."""
    Validations.of(where).acknowledge(Acknowledgment(id=rule, reason=reason))
