"""Log groups that forget."""

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import LogGroup, RetentionDays
from constructs import Construct

_RETENTION = {
    1: RetentionDays.ONE_DAY,
    3: RetentionDays.THREE_DAYS,
    5: RetentionDays.FIVE_DAYS,
    7: RetentionDays.ONE_WEEK,
    14: RetentionDays.TWO_WEEKS,
    30: RetentionDays.ONE_MONTH,
    60: RetentionDays.TWO_MONTHS,
    90: RetentionDays.THREE_MONTHS,
    120: RetentionDays.FOUR_MONTHS,
    150: RetentionDays.FIVE_MONTHS,
    180: RetentionDays.SIX_MONTHS,
    365: RetentionDays.ONE_YEAR,
    400: RetentionDays.THIRTEEN_MONTHS,
    545: RetentionDays.EIGHTEEN_MONTHS,
    731: RetentionDays.TWO_YEARS,
    1096: RetentionDays.THREE_YEARS,
    1827: RetentionDays.FIVE_YEARS,
    2192: RetentionDays.SIX_YEARS,
    2557: RetentionDays.SEVEN_YEARS,
    2922: RetentionDays.EIGHT_YEARS,
    3288: RetentionDays.NINE_YEARS,
    3653: RetentionDays.TEN_YEARS,
}


def log_group(scope: Construct, name: str, days: int, *, keep: bool) -> LogGroup:
    """A log group that keeps its lines for so many days and, if `keep`, outlives the stack.

    It has no name of its own: one that outlived its stack would be in the way of the next.
    """
    removal = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
    return LogGroup(scope, name, retention=_RETENTION[days], removal_policy=removal)
