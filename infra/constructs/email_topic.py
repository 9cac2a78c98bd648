"""A topic that alarms and budgets publish to."""

from aws_cdk import Aws
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_kms import IKey, Key
from aws_cdk.aws_sns import Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from infra.constructs.exceptions import acknowledge

PUBLISHERS = ("cloudwatch.amazonaws.com", "budgets.amazonaws.com")


class EmailTopic(Construct):
    """An encrypted topic that sends e-mails, once the addressee has confirmed the first one.

    CloudWatch cannot use AWS' own key, so the topic gets a key of its own unless one is given. A given key's policy has
    to let CloudWatch and AWS Budgets use it.
    """

    def __init__(self, scope: Construct, name: str, *, email: str, key_arn: str | None) -> None:
        super().__init__(scope, name)
        key = Key.from_key_arn(self, "Key", key_arn) if key_arn else self._key()
        self.topic = Topic(self, "Topic", master_key=key, enforce_ssl=True, display_name="cragside")
        self.topic.add_subscription(EmailSubscription(email))
        acknowledge(
            self.topic,
            "Serverless::Serverless-SNSRedrivePolicy",
            "A queue of undelivered e-mails would need somebody who is told of it; alarms show in CloudWatch too.",
        )
        for service in PUBLISHERS:
            self.topic.add_to_resource_policy(
                PolicyStatement(
                    principals=[ServicePrincipal(service)],
                    actions=["sns:Publish"],
                    resources=[self.topic.topic_arn],
                    conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
                )
            )

    def _key(self) -> IKey:
        key = Key(self, "Key", enable_key_rotation=True, description="cragside: what alarms tell")
        for service in PUBLISHERS:
            key.add_to_resource_policy(
                PolicyStatement(
                    principals=[ServicePrincipal(service)],
                    actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                    resources=["*"],
                    conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
                )
            )
        return key
