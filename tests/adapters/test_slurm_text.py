"""Slurm's own output, both versions, read as core values; and any other text does no harm."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.adapters import slurm_text
from tidegate.adapters.slurm_text import ParseError
from tidegate.core.model.slurm import Association, Licence, Node, SetBy

SAMPLES = Path(__file__).parent / "samples"
VERSIONS = ("22.05", "24.11")

# -- nodes ---------------------------------------------------------------------------------


def node(version: str, name: str) -> Node:
    found = slurm_text.nodes((SAMPLES / f"nodes_{version}.txt").read_text())
    return next(one for one in found if one.name == name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sampled_node_is_read_with_what_is_used(version):
    found = node(version, "i-0123456789abcdef0")

    assert (found.cpus, found.memory_mib, found.gpus, found.gpu_type) == (48, 180_000, 4, "a10g")
    assert found.gpus_alloc > 0
    assert found.cpus_alloc > 0
    assert found.state.is_busy
    assert found.last_busy_at_s > 1_700_000_000
    assert found.address.startswith("10.77.1.")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_reason_of_a_sampled_node_is_what_was_given(version):
    text = (SAMPLES / f"nodes_{version}.txt").read_text()

    reasons = {found.reason for found in slurm_text.nodes(text)}

    assert {"tidegate: gate launch-42", "x|y = z (a, b)"} <= reasons


def test_a_reason_cannot_pretend_a_state():
    line = (
        "NodeName=i-01 CPUAlloc=0 CPUTot=4 RealMemory=1000 AllocMem=0 State=IDLE+DYNAMIC_NORM "
        "Reason=a State=DOWN RealMemory=7 [root@2026-11-21T10:03:28] Comment=Reason=no"
    )

    found = slurm_text.nodes(line)[0]

    assert (found.state.is_down, found.memory_mib) == (False, 1_000)
    assert found.reason == "a State=DOWN RealMemory=7"


def test_instances_of_a_partitioned_gpu_are_devices_of_their_own_type():
    line = (
        "NodeName=i-01 CPUAlloc=0 CPUTot=96 RealMemory=1000 AllocMem=0 State=IDLE+DYNAMIC_NORM "
        "Gres=gpu:a100_1g.5gb:56 GresUsed=gpu:a100_1g.5gb:2(IDX:0,12)"
    )

    found = slurm_text.nodes(line)[0]

    assert (found.gpus, found.gpu_type, found.gpus_alloc) == (56, "a100_1g.5gb", 2)


def test_static_nodes_are_left_out_and_no_nodes_are_none():
    line = "NodeName=a CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State=IDLE"

    assert slurm_text.nodes(line) == ()
    assert slurm_text.nodes("No nodes in the system\n") == ()
    assert slurm_text.nodes("") == ()


@given(st.text(max_size=300))
def test_any_text_for_nodes_gives_nodes_or_a_parse_error(text):
    line = "NodeName=a CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State=IDLE+DYNAMIC_NORM "
    for whole in (text, "NodeName=" + text, line + text, text + line):
        try:
            slurm_text.nodes(whole)
        except ParseError:
            continue


# -- accounting limits ---------------------------------------------------------------------


# The user whose account has MaxJobs=1 in the samples.
MAX_JOBS = {"frank": "free"}


@pytest.mark.parametrize("name", ["assoc_mgr_22.05.txt", "assoc_mgr_24.11.txt"])
def test_sampled_gpu_caps_are_read_with_their_accounts(name):
    found = set(slurm_text.associations((SAMPLES / name).read_text()))

    assert found == {
        Association("account ml", "ml", in_all=2, accounts_below=("vision",)),
        Association("account typed", "typed", tres="gres/gpu:a10g", in_all=1),
        Association("user bob of account vision", "vision", "bob", per_job=1),
        Association("qos pool", qos="pool", in_all=3),
        Association("qos each", qos="each", per_job=2, per_user=2, per_account=3),
        Association("qos each", qos="each", tres="job", per_user=2),
        Association("qos each", qos="each", tres="wall", per_job=1440),
        *(
            Association(f"user {user} of account {account}", account, user, tres="job", per_user=1)
            for user, account in MAX_JOBS.items()
        ),
    }


def test_sampled_caps_of_every_kind_are_read_with_their_scope():
    """Set by sacctmgr on 22.05: an account above another, two users, one QOS."""
    found = slurm_text.associations((SAMPLES / "assoc_mgr_22.05_caps.txt").read_text())

    account: dict[str, Any] = {"account": "lab", "accounts_below": ("vision",)}
    account["scope"] = "account lab"
    user: dict[str, Any] = {"account": "vision", "user": "root"}
    user["scope"] = "user root of account vision"
    nobody: dict[str, Any] = {"account": "lab", "user": "nobody"}
    nobody["scope"] = "user nobody of account lab"
    qos: dict[str, Any] = {"scope": "qos capped", "qos": "capped"}
    assert set(found) == {
        Association(**account, tres="cpu", in_all=100),
        Association(**account, tres="gres/gpu", in_all=12),
        Association(**account, tres="job", in_all=20),
        Association(**account, tres="license/matlab", in_all=3),
        Association(**account, tres="mem", in_all=204_800),
        Association(**account, tres="node", in_all=8),
        Association(**nobody, tres="job", in_all=2),
        Association(**user, tres="cpu", per_job=16),
        Association(**user, tres="gres/gpu", per_job=8),
        Association(**user, tres="job", per_user=3),
        Association(**user, tres="mem", per_job=65_536),
        Association(**user, tres="node", per_job=2),
        Association(**qos, tres="cpu", in_all=50),
        Association(**qos, tres="gres/gpu", per_account=6, per_job=4),
        Association(**qos, tres="job", in_all=7, per_user=2, per_account=3),
        Association(**qos, tres="license/matlab", in_all=2),
        Association(**qos, tres="mem", per_user=102_400),
        Association(**qos, tres="node", per_user=4),
    }


def test_sampled_caps_on_time_nodes_and_partitions_are_read():
    """On 22.05: a user with an association for partition gpu alone, and pq with its own QOS."""
    own_qos = slurm_text.partition_qos((SAMPLES / "partitions_22.05.txt").read_text())
    text = (SAMPLES / "assoc_mgr_22.05_time.txt").read_text()

    found = set(slurm_text.associations(text, own_qos))

    scope = "user nobody of account lab"
    in_gpu: dict[str, Any] = {"account": "lab", "user": "nobody", "partitions": ("gpu",)}
    in_gpu["scope"] = f"{scope} in partition gpu"
    of_pq: dict[str, Any] = {"scope": "qos partq", "qos": "partq", "partitions": ("pq",)}
    assert own_qos == {"pq": "partq"}
    assert found == {
        Association("account lab", "lab", in_all=40),
        Association(scope, "lab", "nobody", tres="job", per_user=1, but_partitions=("gpu",)),
        Association(**in_gpu, per_node=2),
        Association(**in_gpu, tres="wall", per_job=60),
        # GrpTRESRunMins=gres/gpu=90(80) and 500(5): what running jobs still take is used.
        Association(**in_gpu, tres="minutes/gres/gpu", per_job=100, in_all=10),
        Association(**of_pq, in_all=3),
        Association(**of_pq, tres="wall", per_job=120),
        Association(**of_pq, tres="minutes/gres/gpu", per_job=600, in_all=495),
    }


def test_minutes_that_are_used_up_are_a_cap_of_none():
    text = (
        "ClusterName=c Account=a UserName= Partition= Priority=0 ID=1\n"
        "    GrpSubmitJobs=N(0) GrpWall=60(61.50)\n"
        "    GrpTRESMins=cpu=100(99),mem=N(0),gres/gpu=50(50)\n"
        "QOS=q(1)\n"
        "    GrpJobs=N(0) GrpJobsAccrue=N(0) GrpSubmitJobs=N(0) GrpWall=60(59.90)\n"
    )

    assert slurm_text.associations(text) == (
        Association("account a", "a", tres="left/gres/gpu", in_all=0),
        Association("account a", "a", tres="left/wall", in_all=0),
    )


def test_a_cap_on_memory_is_in_mib_with_or_without_a_unit():
    text = "QOS=q(1)\n    GrpTRES=mem=4G(0)\n    MaxTRESPJ=mem=2048\n"

    assert slurm_text.associations(text) == (
        Association("qos q", qos="q", tres="mem", in_all=4_096, per_job=2_048),
    )


def test_sampled_licences_are_read_with_what_is_free():
    found = slurm_text.licences((SAMPLES / "licences_22.05.txt").read_text())

    assert found == (Licence("abaqus", 10), Licence("matlab", 2))
    assert slurm_text.licences("No licenses configured in Slurm.\n") == ()


def test_without_slurmdbd_there_are_no_limits():
    text = "Current Association Manager state\n\nNo associations currently cached in Slurm.\n"

    assert slurm_text.associations(text) == ()


def test_accounts_that_are_their_own_parents_end_the_search():
    text = "".join(
        f"ClusterName=c Account={account} UserName= Partition= Priority=0 ID=1\n"
        f"    ParentAccount={parent}(1) Lft=1 DefAssoc=No\n    GrpTRES=gres/gpu=4(0)\n"
        for account, parent in (("a", "b"), ("b", "a"))
    )

    assert [found.accounts_below for found in slurm_text.associations(text)] == [("b",), ("a",)]


@given(st.text(max_size=300))
def test_any_text_for_limits_gives_limits(text):
    head = "ClusterName=c Account=a UserName= Partition= Priority=0 ID=1\n    GrpTRES=gres/gpu="
    for whole in (text, head + text):
        slurm_text.associations(whole)


# -- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("10:00", 600),
        ("2:00:00", 7_200),
        ("1-02:03:04", 93_784),
        ("365-00:00:00", 31_536_000),
        ("0:00", 0),
    ],
)
def test_durations(text, seconds):
    assert slurm_text.duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "mib"), [("2000M", 2_000), ("10G", 10_240), ("1500", 1_500), ("1.5T", 1_572_864)]
)
def test_memory(text, mib):
    assert slurm_text.memory_mib(text) == mib


def test_an_instant_is_utc():
    assert slurm_text.instant_s("2026-11-21T10:03:15") == 1_795_255_395


@given(st.text(max_size=40))
def test_any_text_gives_a_number_a_time_or_a_parse_error(text):
    for parse in (
        slurm_text.number,
        slurm_text.memory_mib,
        slurm_text.duration_s,
        slurm_text.instant_s,
    ):
        try:
            parse(text)
        except ParseError:
            continue


def drained(said: str, state: str = "IDLE+DRAIN+DYNAMIC_NORM") -> str:
    return (
        f"NodeName=i-01 CPUAlloc=0 CPUTot=4 RealMemory=1000 AllocMem=0 State={state} "
        f"ExtSensorsTemp=n/s{said}"
    )


AT = "2026-11-22T15:42:02"


@pytest.mark.parametrize(
    ("said", "reason", "by"),
    [
        (f" Reason=Epilog error [slurm@{AT}]", "Epilog error", SetBy.SLURM),
        (f" Reason=NHC: no disk [root@{AT}]", "NHC: no disk", SetBy.ROOT),
        (f" Reason=bad fan [ada@{AT}]", "bad fan", SetBy.USER),
        (f" Reason=bad fan [1004@{AT}]", "bad fan", SetBy.USER),
        (f" Reason=idle [slurm@{AT}] Comment=idle", "idle", SetBy.US),
        (f" Reason=idle [slurm@{AT}] Extra=x y Comment=idle", "idle", SetBy.US),
        (f" Reason=idle : Not responding [slurm@{AT}] Comment=idle", "", SetBy.US),
        (f" Reason=tidegate is odd [root@{AT}] Comment=idle", "tidegate is odd", SetBy.ROOT),
        (f" Reason=idle [root@{AT}] Comment=tidegate", "idle", SetBy.ROOT),
        (f" Reason=see [bob@home] [ada@{AT}]", "see [bob@home]", SetBy.USER),
        (" Reason=idle", "idle", SetBy.UNKNOWN),
        (" Comment=tidegate", "", SetBy.UNKNOWN),
    ],
)
def test_who_gave_a_reason_is_slurms_word_and_ours_a_record(said: str, reason: str, by: SetBy):
    (found,) = slurm_text.nodes(drained(said), "slurm")

    assert found.set_by is by
    assert not reason or found.reason == reason


def test_slurm_by_itself_drains_with_the_reason_that_a_node_kept_when_it_was_opened():
    old = f" Reason=bad fan [ada@{AT}]"
    opened: dict[str, str] = {}
    again = old.replace(":02]", ":59]")

    first = slurm_text.nodes(drained(old), "slurm", opened)
    slurm_text.nodes(drained(old, "IDLE+DYNAMIC_NORM"), "slurm", opened)
    found = [slurm_text.nodes(drained(each), "slurm", opened)[0].set_by for each in (old, again)]

    assert first[0].set_by is SetBy.USER
    assert found == [SetBy.SLURM, SetBy.USER]


def test_a_node_that_is_gone_is_forgotten():
    opened: dict[str, str] = {}

    slurm_text.nodes(drained("", "IDLE+DYNAMIC_NORM"), "slurm", opened)
    slurm_text.nodes("", "slurm", opened)

    assert opened == {}


def test_slurm_user_is_read_from_its_configuration():
    assert slurm_text.slurm_user("SlurmUser               = slurm(64030)\n") == "slurm"
    assert slurm_text.slurm_user("") == ""
