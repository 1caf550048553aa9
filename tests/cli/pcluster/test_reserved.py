"""`tidegate import pcluster`: reservations say what compute resources leave out."""

from tests.cli.pcluster.imported import PLACES, run, written


def test_a_resource_may_leave_its_type_to_its_reservation():
    """ParallelCluster asks EC2; a cluster file has it, so it is a gap."""
    done = run("by-reservation.yaml", *PLACES)

    file = written(done)
    assert file["pools"]["block-a"]["instance_types"] == []
    assert file["reservations"][0]["instance_type"] is None
    asked = "`aws ec2 describe-capacity-reservations --capacity-reservation-ids cr-0123456789abcdef"
    assert f"to fill in: pools.block-a.instance_types: that of {asked}0`; where it has" in (
        done.stderr
    )
    assert f"to fill in: reservations[0].instance_type: see {asked}0`" in done.stderr


def test_another_resource_of_the_reservation_tells_its_type():
    file = written(run("by-reservation.yaml", *PLACES))

    assert file["pools"]["reserved-c"]["instance_types"] == ["p4d.24xlarge"]
    assert file["pools"]["reserved-c"]["labels"] == ["c", "dynamic", "gpu"]


def test_a_reservation_has_room_for_all_who_name_it():
    """ParallelCluster refuses a file whose resources together ask for more than it has."""
    file = written(run("by-reservation.yaml", *PLACES))

    assert [each["count"] for each in file["reservations"]] == [4, 7]
