"""What a refusal or a failed boot needs that waiting does not bring: the action, by its name.

A sentence for each `Cure`, with what to type or to write where.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tidegate.core.model.ec2 import NO_KEY, NO_SNAPSHOT, Cure, Market, Offering
from tidegate.core.model.resting import BOOT_FAILURES, BootFailure, Resting
from tidegate.core.model.snapshot import Snapshot

# EC2 may add an encoded message of some kilobytes.
WORDS_MAX = 300

# Offerings of one line.
SHOWN_MAX = 3

# By the stage of a node's boot that failed (the files in userdata/both and userdata/node).
_OF_STAGE: Mapping[str, Cure] = MappingProxyType(
    {
        "munge": Cure.MUNGE,
        "driver": Cure.DRIVER,
        "gpu": Cure.DRIVER,
        "fabric": Cure.DRIVER,
        "shared": Cure.SHARED,
        "lustre": Cure.SHARED,
        "on_node_start": Cure.HOOK,
        "on_node_configured": Cure.HOOK,
    }
)

# By EC2's word for why it ended an instance as it started (`Instance.state_reason`).
_OF_STATE: Mapping[str, Cure] = MappingProxyType({NO_KEY: Cure.KEY, NO_SNAPSHOT: Cure.IMAGE})

# First letters of an instance type, market -> the quota that counts its vCPUs: code and name.
# Source: Service Quotas, service code ec2 (list-service-quotas); P5 has a spot quota of its own.
_QUOTAS: Mapping[tuple[str, bool], tuple[str, str]] = MappingProxyType(
    {
        ("g", False): ("L-DB2E81BA", "Running On-Demand G and VT instances"),
        ("p", False): ("L-417A185B", "Running On-Demand P instances"),
        ("g", True): ("L-3819A6DF", "All G and VT Spot Instance Requests"),
        ("p", True): ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
        ("p5", True): ("L-C4BD4855", "All P5 Spot Instance Requests"),
        ("", False): ("L-1216C47A", "Running On-Demand Standard instances"),
        ("", True): ("L-34B43A08", "All Standard Spot Instance Requests"),
    }
)
_STANDARD = frozenset("acdhimrtz")


def cure_of_stage(stage: str) -> Cure:
    """What a node needs whose boot failed in this stage."""
    return _OF_STAGE.get(stage, Cure.BOOT)


def cure_of_state(state_reason: str) -> Cure:
    """What a node needs that EC2 ended as it started; NONE: EC2 does not tell."""
    return _OF_STATE.get(state_reason, Cure.NONE)


def cure_of(resting: Resting) -> Cure:
    """NONE: the refusal passes by itself. A node that did not come up always needs somebody."""
    if resting.cure is Cure.NONE and resting.code in BOOT_FAILURES:
        return Cure.SHAPE if resting.code == BootFailure.TOO_SMALL else Cure.BOOT
    return resting.cure


def words(resting: Resting) -> str:
    """EC2's own, or the node's: the code first."""
    said = f"{resting.code}: {resting.message}".rstrip(". ")
    return said if len(said) <= WORDS_MAX else f"{said[:WORDS_MAX]}..."


_DOES: Mapping[Cure, str] = MappingProxyType(
    {
        Cure.NONE: "",
        Cure.DENIED: (
            "allow it to the role of function tidegate-{cluster}-planner: Allow ec2:CreateFleet, "
            "ec2:RunInstances, ec2:CreateTags, and iam:PassRole of the nodes' role ({deploy} puts "
            "its policy back; a service control policy or a boundary that denies it is lifted in "
            "the organisation)"
        ),
        Cure.QUOTA: "{quota}; waiting helps only if other instances hold it",
        Cure.IMAGE: (
            "name an image that exists and is shared with this account: `image:` in the cluster "
            "file, then {deploy}; where the account has Allowed AMIs (`aws ec2 "
            "get-allowed-images-settings`), add the image's owner (`amazon`, Canonical) to them"
        ),
        Cure.DISK: (
            "make the nodes' root volume as large as the image's snapshot: `root_gib` of the pool "
            "in the cluster file, then {deploy}"
        ),
        Cure.KEY: (
            "let the planner use the KMS key of the node's disk: `kms_key` in the cluster file "
            "before its first deployment, the key's policy on a cluster that runs "
            "(docs/deploying.md, Keys); tidegate validate --live names the key, and whether spot "
            "lacks a grant for it"
        ),
        Cure.TERMS: "accept the image's terms in AWS Marketplace (EC2's words hold the link)",
        Cure.ACCOUNT: (
            "AWS keeps this account from launching until it has looked at it (a new account or "
            "region: mostly minutes, at most 4 hours, then it writes a mail); if it lasts, ask AWS "
            "Support (https://aws.amazon.com/contact-us/)"
        ),
        Cure.FREE_PLAN: (
            "move the account to AWS's paid plan (`aws freetier upgrade-account-plan "
            "--account-plan-type PAID --region us-east-1`): the free plan of new accounts has a "
            "few small instance types alone"
        ),
        Cure.RESERVATION: (
            "the reservation is gone, or no place of it is this account's: take it out of "
            "`reservations` or its group, then {deploy}"
        ),
        Cure.SPOT_ROLE: (
            "make the role that spot needs, once per account: aws iam "
            "create-service-linked-role --aws-service-name spot.amazonaws.com"
        ),
        Cure.TEMPLATE: (
            "deploy again, the launch template or what it names (security group, subnet, instance "
            "profile) is gone: {deploy}"
        ),
        Cure.MUNGE: (
            "give head and nodes one Munge key: on the head, sudo rm /etc/munge/munge.key "
            "SHARED_DIR/.tidegate/munge.fingerprint && sudo reboot (SHARED_DIR: `shared_dir` of "
            "the cluster file); it fetches the key of the secret again"
        ),
        Cure.DRIVER: (
            "take an image whose driver fits the instance type: `image: dlami`, or bake one, in "
            "the cluster file, then {deploy}"
        ),
        Cure.SHARED: (
            "let nodes reach the file system: its mount target in the node's zone, its security "
            "group (NFS, 2049), its DNS name; then see tidegate node log NODE"
        ),
        Cure.HOOK: (
            "mend the script, or what it needs: tidegate node log NODE has its last words, `hooks` "
            "of the cluster file its address, checksum and time-out; then {deploy} when the file "
            "changes"
        ),
        Cure.SHAPE: (
            "take an image in which Slurm sees all that the type has (driver, GPUs, memory): "
            "`image:` in the cluster file, then {deploy}"
        ),
        Cure.BOOT: (
            "read how far its boot came: tidegate events --since 1h names the node, tidegate node "
            "log NODE its stages; an image that cannot boot is changed by `image:` in the cluster "
            "file, then {deploy}"
        ),
        Cure.START_DENIED: (
            "allow it to the role of function tidegate-{cluster}-planner: Allow "
            "ec2:StartInstances and ec2:CreateTags on the cluster's instances ({deploy} puts its "
            "policy back; a service control policy or a boundary that denies it is lifted in the "
            "organisation), or keep none: `stopped_nodes: 0`, then {deploy}"
        ),
    }
)


def remedy(resting: Resting, cluster: str, pool: str = "POOL") -> str:
    """What to do; "": nothing but to wait. `pool`: one that would sell it."""
    does = _DOES[cure_of(resting)].format(
        cluster=cluster,
        deploy=f"npx cdk deploy tidegate-{cluster}",
        quota=_quota(resting.offering),
    )
    again = f"; then, to have it tried at once: tidegate retry {resting.pool or pool}"
    return f"{does}{again}" if does else ""


def in_general(cure: Cure) -> str:
    """What to do, where nobody says of which cluster; "": nothing but to wait."""
    return _DOES[cure].format(
        cluster="NAME", deploy="npx cdk deploy tidegate-NAME", quota="ask AWS for more"
    )


def needed(snapshot: Snapshot) -> Iterator[str]:
    """What somebody has to put right before these offerings can be bought: cause and remedy."""
    groups: dict[str, list[Resting]] = {}
    for each in sorted(snapshot.resting, key=lambda each: each.key):
        if each.until_s > snapshot.now_s and (does := remedy(each, snapshot.cluster.name)):
            groups.setdefault(does, []).append(each)
    for does, ours in groups.items():
        names = ", ".join(str(each.offering) for each in ours[:SHOWN_MAX])
        more = f" and {len(ours) - SHOWN_MAX} more" if len(ours) > SHOWN_MAX else ""
        is_broken = ours[0].code in BOOT_FAILURES
        said = "the last node of it did not come up" if is_broken else "EC2 refuses it"
        of = f" of pool {ours[0].pool}" if ours[0].pool else ""
        yield f"{names}{more}{of}: {said}: {words(ours[0])}; {does}"
    yield from _not_started(snapshot)


def _not_started(snapshot: Snapshot) -> Iterator[str]:
    """Pools whose stopped nodes stand in vain."""
    resting = (each for each in snapshot.denied_starts if each.until_s > snapshot.now_s)
    for pool, each in {each.pool: each for each in resting}.items():
        does = remedy(each, snapshot.cluster.name)
        kept = f"stopped nodes of pool {pool} are kept and not started, EC2 refuses it"
        yield f"{kept}: {words(each)}; {does}"


def _quota(offering: Offering) -> str:
    is_spot = offering.market is Market.SPOT
    name, zone = offering.instance_type, offering.zone
    family = name.partition(".")[0]
    letters = _letters(family)
    key = "" if letters in _STANDARD else "g" if letters in ("gr", "vt") else letters
    found = _QUOTAS.get(("p5" if is_spot and family.startswith("p5") else key, is_spot))
    region = f" --region {zone[:-1]}" if zone[-2:-1].isdigit() else ""
    if found is None:
        listed = f"aws service-quotas list-service-quotas --service-code ec2{region}"
        return f"ask AWS for more vCPUs of {family} ({listed} has the quota's code)"
    code, called = found
    asked = f"aws service-quotas request-service-quota-increase --service-code ec2{region}"
    return f"ask AWS for more of `{called}`: {asked} --quota-code {code} --desired-value VCPUS"


def _letters(family: str) -> str:
    """The letters before the first digit: `g` of `g4dn`, `trn` of `trn1`."""
    digit = next((n for n, each in enumerate(family) if each.isdigit()), len(family))
    return family[:digit]
