"""Why each rule that prod does not follow is not followed, and what an operator who has to follow it does."""

from collections.abc import Mapping

_KEY = "Set `operations.kms_key_arn` to a key of your own. Unset, AWS' keys encrypt."
_UPLOADS = (
    "Files lie in this bucket from their upload to the request that adds them, two days at most. The documents "
    "are in PostgreSQL."
)

ANSWERS: Mapping[str, str] = {
    "CloudWatchAlarmAction": "This alarm tells CodeDeploy to bring the old version back. The alarms that tell a person "
    "are in the stack `observability`.",
    "CloudWatchLogGroupEncrypted": _KEY,
    "EC2EBSInBackupPlan": "Data Lifecycle Manager makes a snapshot each night and keeps it for "
    "`servers.backup_days`. A vault of AWS Backup that holds recovery points cannot be deleted with its stack.",
    "IAMNoInlinePolicy": "Each policy belongs to one role and is deleted with it. A managed policy could be attached "
    "to others.",
    "LambdaConcurrency": "Set `reserved_concurrency` for the requests; a writable store needs it. What the queue "
    "starts is bounded by `knowledge.index_concurrency`.",
    "LambdaDLQ": "API Gateway and the queue wait for an answer, and the queue has a queue of dead letters. Only the "
    "sweep's schedule does not wait; its next event makes up for a lost one.",
    "LambdaInsideVPC": "The smallest shape reaches no server and has no network. Set `network` where the rule has to "
    "hold.",
    "S3BucketLoggingEnabled": f"{_UPLOADS} API Gateway logs the requests for both.",
    "S3BucketReplicationEnabled": _UPLOADS,
    "S3BucketVersioningEnabled": f"{_UPLOADS} A version would outlive the file's deletion.",
    "S3DefaultEncryptionKMS": _KEY,
    "SecretsManagerRotationEnabled": "Clients hold the token too. Two tokens are valid while they are exchanged by "
    "hand; a rotation on a schedule would lock clients out.",
    "SecretsManagerUsingKMSKey": _KEY,
    "VPCDefaultSecurityGroupClosed": "Nothing is in the default group. To close it, the CDK would add a function with "
    "the right to change security groups.",
    "VPCNoUnrestrictedRouteToIGW": "SearXNG asks search engines, whose addresses nobody knows. Functions and databases "
    "have no such route.",
}
