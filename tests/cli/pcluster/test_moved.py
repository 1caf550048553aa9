"""`tidegate import pcluster`: rights, homes, features and Lustre's client, elsewhere here."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.pcluster.imported import FILES, PLACES, accepted, changed, codes, good, run, written
from tidegate.cli.main import app

RIGHTS = """
  Iam:
    AdditionalIamPolicies:
      - Policy: arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore
      - Policy: arn:aws:iam::123456789012:policy/head
"""


def test_policies_of_the_head_come_along(tmp_path: Path):
    """Session Manager it has anyway; what no policy says is lost."""
    file = changed(tmp_path, "HeadNode:\n", f"HeadNode:{RIGHTS}")
    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])
    assert (done.exit_code, done.stderr) == (0, "")
    assert good(done).head.policies == ("arn:aws:iam::123456789012:policy/head",)

    own = "HeadNode:\n  Iam: {S3Access: [{BucketName: ours}]}\n"
    file = changed(tmp_path, "HeadNode:\n", own)
    assert codes(CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])) == {"rights"}


@pytest.mark.parametrize(("rights", "code"), [(RIGHTS, "rights"), ("", "without-harm")])
def test_that_people_have_no_rights_of_the_head_is_told_where_they_had_some(
    tmp_path: Path, rights: str, code: str
):
    """Its metadata service is open to everybody there who says so, and here to nobody."""
    own = f"HeadNode:\n  Imds: {{Secured: false}}{rights or chr(10)}"
    file = changed(tmp_path, "HeadNode:\n", own)

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert ran.exit_code == (1 if rights else 3)
    said = "HeadNode.Imds.Secured: only root and the agent have the rights of head and login nodes"
    assert f"{said}, people their own [{code}]" in ran.stderr


def test_a_policy_that_is_none_is_told(tmp_path: Path):
    own = "HeadNode:\n  Iam: {AdditionalIamPolicies: [{Policy: AmazonS3FullAccess}]}\n"
    file = changed(tmp_path, "HeadNode:\n", own)

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert codes(ran) == {"rights"}
    assert "are left out: must be an IAM policy's ARN" in ran.stderr


def test_the_role_of_a_queue_s_nodes_becomes_the_role_of_its_jobs(tmp_path: Path):
    role = "arn:aws:iam::123456789012:role/jobs"
    file = changed(tmp_path, "CapacityType:", f"Iam: {{InstanceRole: {role}}}\n      CapacityType:")

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    (pool,) = written(ran)["pools"]
    assert good(ran).job_roles == {pool: {"": role}}
    assert f"to check: pools.{pool}.job_role: must trust the role" in ran.stderr


def test_of_an_instance_profile_the_role_is_asked_for(tmp_path: Path):
    profile = "arn:aws:iam::123456789012:instance-profile/nodes"
    own = f"Iam: {{InstanceProfile: {profile}}}\n      CapacityType:"
    file = changed(tmp_path, "CapacityType:", own)

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert ran.exit_code == 3
    assert [pool["job_role"] for pool in written(ran)["pools"].values()] == [None]
    assert "the role in `aws iam get-instance-profile --instance-profile-name nodes`" in ran.stderr


@pytest.mark.parametrize(
    ("iam", "said"),
    [
        ("InstanceRole: jobs", "jobs is no role's ARN"),
        ("S3Access: [{BucketName: sets}]", "make a role with read s3://sets/*, and name it"),
        (
            "S3Access: [{BucketName: sets, KeyName: a/*, EnableWriteAccess: true}]",
            "make a role with read and write s3://sets/a/*",
        ),
        (
            "AdditionalIamPolicies: [{Policy: 'arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess'}]",
            "make a role with arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess, and",
        ),
    ],
)
def test_rights_of_a_queue_s_nodes_are_told_with_what_to_do(tmp_path: Path, iam: str, said: str):
    file = changed(tmp_path, "CapacityType:", f"Iam: {{{iam}}}\n      CapacityType:")

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert codes(ran) == {"rights"}
    assert said in ran.stderr


def test_session_manager_alone_is_no_right_that_jobs_lose(tmp_path: Path):
    policy = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    own = f"Iam: {{AdditionalIamPolicies: [{{Policy: {policy}}}]}}\n      CapacityType:"
    file = changed(tmp_path, "CapacityType:", own)

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert (ran.exit_code, ran.stderr) == (0, "")


HOME = "SharedStorage: [{{Name: home, MountDir: /home, StorageType: {}}}]\nScheduling:"


def test_homes_on_an_efs_come_along_beside_the_new_ones(tmp_path: Path):
    """A cluster's homes are below its shared folder: whose files were in /home must find them."""
    settings = "Efs, EfsSettings: {FileSystemId: fs-0a1b2c3d}"
    file = changed(tmp_path, "Scheduling:", HOME.format(settings))
    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])
    assert codes(ran) == {"storage"}
    assert "SharedStorage[home]: Efs at /home is at /old-home: homes are in SHARED_DIR/home" in (
        ran.stderr
    )

    done = CliRunner().invoke(
        app, ["import", "pcluster", str(file), *PLACES, "--accept", "storage"]
    )

    assert written(done)["file_systems"] == [{"directory": "/old-home", "efs": "fs-0a1b2c3d"}]


MORE_LUSTRE = """
SharedStorage:
  - {Name: new, MountDir: /fsx, StorageType: FsxLustre, FsxLustreSettings: {StorageCapacity: 1200}}
  - Name: one
    MountDir: /one
    StorageType: FsxLustre
    FsxLustreSettings: {FileSystemId: fs-0a1b2c3d}
  - Name: home
    MountDir: /home
    StorageType: FsxLustre
    FsxLustreSettings: {FileSystemId: fs-0a1b2c3e}
  - {Name: newer, MountDir: /newer, StorageType: FsxLustre}
"""


def test_every_lustre_that_is_there_comes_along_beside_a_new_one(tmp_path: Path):
    file = changed(tmp_path, "Scheduling:", f"{MORE_LUSTRE}Scheduling:")
    ask = ("import", "pcluster", str(file), *PLACES)
    assert codes(CliRunner().invoke(app, [*ask])) == {"storage"}
    done = CliRunner().invoke(app, [*ask, "--accept", "storage"])

    gaps = {"mount_name": None, "security_group": None}
    assert written(done)["file_systems"] == [
        {"directory": "/one", "lustre": "fs-0a1b2c3d", **gaps},
        {"directory": "/old-home", "lustre": "fs-0a1b2c3e", **gaps},
        {"directory": "/newer", "lustre": None, **gaps},
    ]
    said = "file_systems[2].lustre: the old cluster's, with DeletionPolicy: Retain for newer ("
    assert f"to fill in: {said}`aws cloudformation list-stack-resources" in done.stderr
    assert written(done)["lustre"]["directory"] == "/fsx"
    said = "file_systems[1].mount_name: that of fs-0a1b2c3e: `aws fsx describe-file-systems"
    assert f"to fill in: {said}" in done.stderr


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("FsxOpenZfs, FsxOpenZfsSettings: {VolumeId: fsvol-0a1b2c3d}", "is at /old-home: homes"),
        ("FsxOntap, FsxOntapSettings: {VolumeId: fsvol-0a1b2c3d}", "is at /old-home: homes are in"),
        ("Ebs, EbsSettings: {Size: 100}", "no EBS volume is shared from the head"),
    ],
)
def test_other_homes_are_told_once_with_where_they_are_now(tmp_path: Path, storage: str, said: str):
    file = changed(tmp_path, "Scheduling:", HOME.format(storage))

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    (line,) = [each for each in ran.stderr.splitlines() if "SharedStorage[home]" in each]
    assert said in line


def test_homes_on_another_server_are_a_gap_beside(tmp_path: Path):
    """That of AWS's own template for GPU clusters: OpenZFS at /home."""
    zfs = "FsxOpenZfs, FsxOpenZfsSettings: {VolumeId: fsvol-0a1b2c3d}"
    file = changed(tmp_path, "Scheduling:", HOME.format(zfs))

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES, "--accept=storage"])

    assert written(ran)["file_systems"] == [{"directory": "/old-home", "nfs": None}]
    assert "to fill in: file_systems[0].nfs: host:/path of fsvol-0a1b2c3d" in ran.stderr


@pytest.mark.parametrize(
    "storage",
    [
        "FsxLustre, FsxLustreSettings: {StorageCapacity: 1200}",
        "FsxOpenZfs, FsxOpenZfsSettings: {VolumeId: fsvol-0123456789abcdef0}",
    ],
)
def test_what_was_at_shared_stays_there_and_the_cluster_s_files_are_elsewhere(
    tmp_path: Path, storage: str
):
    """Jobs name paths in /shared: it is Lustre's in AWS's own files, and homes come elsewhere."""
    file = changed(tmp_path, "Scheduling:", HOME.format(storage).replace("/home", "/shared"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    made = written(done)
    assert made["shared_dir"] == "/efs"
    assert (made.get("lustre") or made["file_systems"][0])["directory"] == "/shared"
    assert "not needed: shared_dir: /efs has homes and the cluster's own files" in done.stderr


def test_the_cluster_s_files_are_where_nothing_else_is(tmp_path: Path):
    two = """SharedStorage:
  - {Name: a, MountDir: /shared/a, StorageType: FsxOpenZfs, FsxOpenZfsSettings: {VolumeId: x}}
  - {Name: b, MountDir: /efs, StorageType: FsxOntap, FsxOntapSettings: {VolumeId: y}}
Scheduling:"""

    file = changed(tmp_path, "Scheduling:", two)
    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert written(done)["shared_dir"] == "/cluster"


def test_a_line_may_need_one_that_comes_after_it(tmp_path: Path):
    lines = "[{JobCompType: jobcomp/filetxt}, {JobCompLoc: /var/log/slurm/jobs.txt}]"
    file = changed(tmp_path, "Scheduling: true", f"Scheduling: true, CustomSlurmSettings: {lines}")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert dict(good(done).slurm.settings)["JobCompType"] == "jobcomp/filetxt"


def test_numbers_in_quotes_and_merged_parts_are_read_as_there(tmp_path: Path):
    """A merged part gives way to what stands beside it."""
    two = """MaxCount: "8"}
    - &first
      Name: one
      CapacityType: ONDEMAND
      Networking: {SubnetIds: [subnet-0a1b2c3d]}
      ComputeResources: [{Name: a, InstanceType: c5.large, MaxCount: 3, Efa: {Enabled: "false"}}]
    - {<<: *first, Name: two, CapacityType: SPOT}"""
    file = changed(tmp_path, "MaxCount: 8}", two)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    pools = written(done)["pools"]
    assert {name: each["capacity_types"] for name, each in pools.items()} == {
        "cpu-small": ["spot"],
        "one-a": ["on-demand"],
        "two-a": ["spot"],
    }
    assert pools["cpu-small"]["limits"] == {"nodes": 8}
    assert "efa" not in pools["two-a"]


def test_resources_of_one_block_share_its_places(tmp_path: Path):
    file = tmp_path / "old.yaml"
    more = "        - {Name: b, InstanceType: p5.48xlarge, MinCount: 2, MaxCount: 2}\n"
    file.write_text((FILES / "training.yaml").read_text() + more)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    (block,) = written(done)["reservations"]
    assert block["count"] == 66


def test_spot_is_in_no_reservation_and_says_so(tmp_path: Path):
    target = "CapacityReservationTarget: {CapacityReservationId: cr-0123456789abcdef1}"
    file = changed(tmp_path, "MinCount: 1", f"{target}, MinCount: 1")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert "reservations" not in written(done)
    place = "ComputeResources[small].CapacityReservationTarget"
    assert f"{place}: spot instances are in no reservation [without-harm]" in done.stderr


@pytest.mark.parametrize(
    ("resource", "labels"),
    [
        ("Name: small, InstanceType: c5.2xlarge", {"small", "static", "dynamic"}),
        ("Name: g4dn, InstanceType: g4dn.xlarge", {"static", "dynamic", "gpu"}),
        ("Name: trn, InstanceType: trn1.2xlarge", {"trn", "static", "dynamic"}),
        (
            "Name: fast, InstanceType: p4d.24xlarge, Efa: {Enabled: true}",
            {"fast", "static", "dynamic", "gpu", "efa"},
        ),
    ],
)
def test_jobs_may_name_the_same_features(tmp_path: Path, resource: str, labels: set[str]):
    """A job with --constraint=small was sent there, and would be refused here without the label."""
    file = changed(tmp_path, "Name: small, InstanceType: c5.2xlarge", resource)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    (pool,) = good(done).cluster.pools
    assert "nodes have no feature" not in done.stderr
    assert set(pool.labels) == labels
    (kind,) = pool.instance_types
    assert {*labels, kind.name} <= set(pool.features(kind.name, pool.markets[0]))


def test_a_feature_that_cannot_be_borne_is_told(tmp_path: Path):
    file = changed(tmp_path, "Name: small,", "Name: Small,")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert (
        "ComputeResources[Small].Name: nodes have no feature Small: jobs with this" in done.stderr
    )


@pytest.mark.parametrize("word", ["", "EnableMemoryBasedScheduling: false"])
def test_jobs_that_share_memory_are_told_that_they_will_not(tmp_path: Path, word: str):
    """It is off where nothing is said: a job without --mem had the whole node's."""
    file = changed(tmp_path, "EnableMemoryBasedScheduling: true", word)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert done.stderr.count("EnableMemoryBasedScheduling: memory is given out too") == 1


@pytest.mark.parametrize(
    ("above", "option"),
    [("HeadNode:\n", "hooks.on_head_configured"), ("LoginNodes:\n", "hooks.on_login_configured")],
)
def test_a_script_at_the_start_is_told_what_there_is_instead(
    tmp_path: Path, above: str, option: str
):
    actions = "CustomActions: {OnNodeStart: {Script: s3://ours/start.sh}}"
    ssh = "Ssh: {AllowedIps: 192.0.2.0/24}"
    pool = f"  Pools: [{{Name: a, Count: 1, InstanceType: m5.large, {actions}, {ssh}, "
    login = f"LoginNodes:\n{pool}Networking: {{SubnetIds: [subnet-0a1b2c3d]}}}}]\nHeadNode:\n"
    head = f"HeadNode:\n  {actions}\n"

    file = changed(tmp_path, "HeadNode:\n", login if above.startswith("Login") else head)
    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert codes(done) == {"hooks"}
    assert f"scripts do not run then; see {option}" in done.stderr


@pytest.mark.parametrize("queue", ["spot", "c5", "Reserved"])
def test_a_pool_is_not_called_as_a_feature_that_nodes_have(tmp_path: Path, queue: str):
    """Nothing of the resource's name is left."""
    file = changed(tmp_path, "Name: cpu", f"Name: {queue}")
    file.write_text(file.read_text().replace("Name: small", "Name: 🚀"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert [each.name for each in good(done).cluster.pools] == [f"{queue.lower()}-2"]


def test_threads_are_off_where_no_other_resource_has_the_type_with_them():
    refused = run("settings.yaml", *PLACES)
    pools = written(accepted("settings.yaml", *PLACES))["pools"]

    assert [pool.get("threads_per_core") for pool in pools.values()] == [1, None, None]
    assert "[a].DisableSimultaneous" not in refused.stderr
    assert "[b].DisableSimultaneousMultithreading: c5.xlarge has two threads" in refused.stderr


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("override_homedir: /home/%u", "homes are in SHARED_DIR/home here, not /home/%u"),
        ("ldap_auth_disable_tls_never_use_in_production: true", "is set by the section itself"),
    ],
)
def test_options_of_sssd_that_would_break_homes_or_show_passwords_are_told(
    tmp_path: Path, option: str, said: str
):
    more = f"DomainAddr: ldaps://a, AdditionalSssdConfigs: {{{option}}}"
    people = f"{{DomainName: 'dc=a,dc=b', {more}}}"
    file = changed(tmp_path, "HeadNode:\n", f"DirectoryService: {people}\nHeadNode:\n")

    refused = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])
    meant = CliRunner().invoke(
        app, ["import", "pcluster", str(file), *PLACES, "--accept", "directory"]
    )

    assert codes(refused) == {"directory"}
    assert f"AdditionalSssdConfigs.{option.split(':')[0]}: {said}" in refused.stderr
    assert "options" not in written(meant)["directory"]
