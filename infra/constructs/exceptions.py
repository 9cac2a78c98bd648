"""Exceptions to cdk-nag's rules, each with its reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(where: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding of AwsSolutions on this construct and what is below it."""
    Validations.of(where).acknowledge(Acknowledgment(id=f"AwsSolutions::{rule}", reason=reason))
