"""The month's budget."""

from aws_cdk.aws_budgets import CfnBudget
from constructs import Construct


def monthly_budget(scope: Construct, name: str, *, usd: int, topic_arn: str | None) -> CfnBudget:
    """A budget of the whole account, as costs by tag are there only after somebody has activated the tag.

    The topic is told at 80 % of it, and when AWS expects more than all of it.
    """
    budget = CfnBudget.BudgetDataProperty(
        budget_type="COST",
        time_unit="MONTHLY",
        budget_limit=CfnBudget.SpendProperty(amount=usd, unit="USD"),
    )
    if topic_arn is None:
        return CfnBudget(scope, name, budget=budget)
    subscribers = [CfnBudget.SubscriberProperty(subscription_type="SNS", address=topic_arn)]
    return CfnBudget(
        scope,
        name,
        budget=budget,
        notifications_with_subscribers=[
            CfnBudget.NotificationWithSubscribersProperty(
                notification=CfnBudget.NotificationProperty(
                    comparison_operator="GREATER_THAN", notification_type=kind, threshold=percent
                ),
                subscribers=subscribers,
            )
            for kind, percent in (("ACTUAL", 80), ("FORECASTED", 100))
        ],
    )
