"""AWS's error codes by what they mean to us; `aws_errors.py` reads them from answers.

Sources: "Error codes for the Amazon EC2 API" (AWSEC2 APIReference, errors-overview), "Error
handling with DynamoDB", botocore's retry checkers for the throttling codes, and the codes that
Karpenter (pkg/errors) and ParallelCluster (slurm_plugin, fast capacity fail-over) have met.
"""

from tidegate.core.model.ec2 import Cure

# EC2 has none of it there now. `Unsupported` is what it says of a type that a zone never
# had, `SpotMaxPriceTooLow` of a spot price above on-demand: another offering may still come.
# A Capacity Block that begins late is `PendingActivation` until it does, an interruptible
# reservation that is taken back is `Unavailable` (Karpenter's tests of unavailable offerings).
CAPACITY = frozenset(
    {
        "InsufficientAddressCapacity",
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientVolumeCapacity",
        "InvalidCapacityReservationState",
        "InvalidCapacityReservationState.PendingActivation",
        "InvalidCapacityReservationState.Unavailable",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",
        "VolumeTypeNotAvailableInZone",
    }
)

# Fleets say `Unsupported` with the code of any mistake in them, which these words alone tell apart.
# Source: EC2's answer in compiler-explorer/infra#601.
INVALID_FLEET = "InvalidFleetConfiguration"
NOT_IN_ZONE = "is not supported in your requested Availability Zone"

# Of a Capacity Block that is sold no more, or was never offered to this account.
# Source: "Error codes for the Amazon EC2 API".
OFFER_GONE = frozenset(
    {
        "InvalidCapacityBlockOfferingIdExpired",
        "InvalidCapacityBlockOfferingIdMalformed",
        "InvalidCapacityBlockOfferingIdNotFound",
    }
)
# DescribeCapacityBlockOfferings of a type, number or duration that is not sold in blocks here.
UNSOLD = frozenset({"InvalidParameterValue", "Unsupported", "UnsupportedOperation"})
# GetSpotPlacementScores: no new questions until 24 hours are over, or none about so many.
SCORE_LIMIT = frozenset(
    {
        "MaxConfigLimitExceeded",
        "MaxConfigLimitExceededException",
        "TargetCapacityLimitExceeded",
        "TargetCapacityLimitExceededException",
    }
)

# The account may not have more; other types and zones of that market will not help.
QUOTA = frozenset(
    {
        "InstanceLimitExceeded",
        "MaxFleetCountExceeded",
        "MaxIOPSLimitExceeded",
        "MaxSpotFleetRequestCountExceeded",
        "MaxSpotInstanceCountExceeded",
        "NetworkInterfaceLimitExceeded",
        "VcpuLimitExceeded",
        "VolumeLimitExceeded",
    }
)

# These have quotas of their own, not those of instances that the remedy names.
OF_DISKS_AND_CARDS = frozenset(
    {"MaxIOPSLimitExceeded", "NetworkInterfaceLimitExceeded", "VolumeLimitExceeded"}
)

SUBNET = frozenset({"InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded"})

# SES takes no mail from this account, and SES takes this one not.
# Source: SES API v2 reference, SendEmail, "Errors".
MAIL_PAUSED = frozenset({"AccountSuspendedException", "SendingPausedException"})
MAIL_UNVERIFIED = frozenset({"MailFromDomainNotVerifiedException", "MessageRejected"})
MAIL_REFUSED = frozenset({"BadRequestException", "MessageRejected", "NotFoundException"})

# Says how fast we may ask (or that a rival holds a DynamoDB item just now) and nothing about
# capacity: never a reason to rest an offering.
THROTTLING = frozenset(
    {
        "BandwidthLimitExceeded",
        "CapacityBlockDescribeLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)

# Trouble of AWS's own, or too many calls, whatever the code that comes with it.
# Source: botocore, retries/standard.py (transient status codes) and 429 beside them.
BUSY_STATUS = frozenset({429, 500, 502, 503, 504})

# AWS's own trouble, as codes and as bare HTTP status of answers without a code.
UNAVAILABLE = frozenset(
    {
        "500",
        "502",
        "503",
        "504",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestTimeout",
        "RequestTimeoutException",
        "RetryableError",
        "ServerInternal",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)

# The credentials themselves are no good, whatever they may do.
# Source: "Common error codes" of AWS's APIs.
UNKNOWN_CALLER = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)

# By policy, by such credentials, or by a clock that is more than minutes off.
# Sources: EC2's and S3's error codes; EventBridge API reference, PutEventsResultEntry.
ACCESS_DENIED = UNKNOWN_CALLER | {
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "ForbiddenException",
    "IncompleteSignature",
    "InvalidSecurity.RequestHasExpired",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "NotAuthorizedForDetailTypeException",
    "NotAuthorizedForSourceException",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "UnauthorizedException",
    "UnauthorizedOperation",
}

INSTANCE_NOT_FOUND = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})

# TerminateInstances and StopInstances, of an instance with termination or stop protection.
# Source: "Error codes for the Amazon EC2 API".
PROTECTED = "OperationNotPermitted"
# StartInstances and StopInstances: the instance is still on its way to another state.
WRONG_STATE = frozenset({"IncorrectInstanceState", "IncorrectState"})
# What waiting does not cure. Source: "Error codes for the Amazon EC2 API"; the spot role's is
# what instant fleets answer in an account that never used spot.
CURES = {
    "AccountDisabled": Cure.ACCOUNT,
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": Cure.SPOT_ROLE,
    "Blocked": Cure.ACCOUNT,
    "InvalidAMIID.Malformed": Cure.IMAGE,
    "InvalidAMIID.NotFound": Cure.IMAGE,
    "InvalidAMIID.Unavailable": Cure.IMAGE,
    "InvalidBlockDeviceMapping": Cure.DISK,
    "InvalidCapacityReservationId.Malformed": Cure.RESERVATION,
    "InvalidCapacityReservationId.NotFound": Cure.RESERVATION,
    "InvalidGroup.NotFound": Cure.TEMPLATE,
    "InvalidIamInstanceProfileArn.Malformed": Cure.TEMPLATE,
    "InvalidKeyPair.NotFound": Cure.TEMPLATE,
    "InvalidLaunchTargets": Cure.RESERVATION,
    "InvalidLaunchTemplateId.Malformed": Cure.TEMPLATE,
    "InvalidLaunchTemplateId.NotFound": Cure.TEMPLATE,
    "InvalidLaunchTemplateId.VersionNotFound": Cure.TEMPLATE,
    "InvalidLaunchTemplateName.NotFoundException": Cure.TEMPLATE,
    "InvalidPlacementGroup.Unknown": Cure.TEMPLATE,
    "InvalidSecurityGroupID.NotFound": Cure.TEMPLATE,
    "InvalidSubnet": Cure.TEMPLATE,
    "InvalidSubnetID.NotFound": Cure.TEMPLATE,
    "InvalidSubnetId.NotFound": Cure.TEMPLATE,
    "OptInRequired": Cure.ACCOUNT,
    "PendingVerification": Cure.ACCOUNT,
    **dict.fromkeys(QUOTA - OF_DISKS_AND_CARDS, Cure.QUOTA),
}
# Where a code has several meanings: a part of EC2's words, in small letters, tells this one.
# Sources: hashicorp/terraform-provider-aws, the answers to RunInstances that it tries again; EC2
# user guide, "Troubleshoot Amazon EC2 instance launch issues"; aws-samples/eks-workshop-v2#1644 and
# splunk/attack_range#1302, of accounts on the free plan (since July 2025).
CURES_BY_WORDS = (
    ("AuthFailure", "not authorized for images", Cure.IMAGE),
    ("InvalidParameterCombination", "not eligible for free tier", Cure.FREE_PLAN),
    ("InvalidParameterValue", "iaminstanceprofile", Cure.TEMPLATE),
    ("OptInRequired", "marketplace", Cure.TERMS),
)
OBJECT_NOT_FOUND = frozenset({"404", "NoSuchKey"})
# Of a write that asks for none to be there: one is, or another one is being written.
# Source: S3 user guide, "How to prevent object overwrites with conditional writes".
OBJECT_THERE = frozenset({"409", "412", "ConditionalRequestConflict", "PreconditionFailed"})

# What a cluster file names and the account does not have.
MISSING = frozenset(
    {
        "404",
        "FileSystemNotFound",
        "InvalidAMIID.Malformed",
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Unavailable",
        "InvalidDocument",
        "InvalidGroup.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidSubnetID.NotFound",
        "InvalidVpcID.NotFound",
        "NoSuchBucket",
        "NoSuchEntity",
        "NotFoundException",
        "ParameterNotFound",
        "ResourceNotFoundException",
    }
)
# Source: "Error codes for the Amazon EC2 API".
NO_DEFAULT_NETWORK = frozenset(
    {"DefaultSubnetDoesNotExistInAZ", "DefaultVpcDoesNotExist", "MissingInput", "VPCIdNotSpecified"}
)
IDEMPOTENCY_MISMATCH = frozenset(
    {"IdempotentParameterMismatch", "IdempotentParameterMismatchException"}
)
# A request repeated under its token, whose instances have ended meanwhile: it buys nothing more.
# Source: RunInstances in boto/boto3#4406; what a fleet says then is not documented.
TOKEN_OF_ENDED = "IdempotentInstanceTerminated"
# Among the reasons of a cancelled transaction: more than a partition or the table takes.
THROUGHPUT = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
TRANSACTION_CANCELLED = "TransactionCanceledException"
CONDITION_FAILED = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})

# Another transaction held the item; whether that one won is not said.
LOST_RACE = CONDITION_FAILED | {"TransactionConflict"}
