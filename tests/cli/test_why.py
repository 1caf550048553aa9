"""`tidegate why`, from what a real look stored in the local cloud's S3."""

import pytest

from tests.cli.conftest import Town
from tests.make import job
from tidegate.core.model.ec2 import Market, Offering


def test_a_job_that_gets_a_node_hears_which_and_when(town: Town) -> None:
    town.report([job(1)])
    town.look()

    result = town.ask("why", "1")

    assert result.exit_code == 0
    assert result.output.startswith("job 1 starts soon: nodes are being bought for it, in about ")
    assert "t4: chosen, 1 x g4dn.xlarge/us-east-1a/spot" in result.output
    assert "boots for " in result.output
    assert "it needs     1 node: 1 t4, 1 CPU, 1000 MiB per node; no time limit\n" in result.output


def test_the_answer_is_the_stored_one_however_often_one_asks(town: Town) -> None:
    town.report([job(1, gpus=64)])
    town.look()
    first = town.ask_json("why", "1")
    # What the head says later, no look has judged yet.
    town.report([job(1, gpus=1), job(2)])

    second, other = town.ask_json("why", "1"), town.ask_json("why", "2")

    assert first["headline"] == second["headline"]
    assert "the job asks 64" in second["headline"]
    assert other["headline"] == "job 2 waits: no look has judged it yet"


def test_a_refusal_is_told_in_ec2_s_words(town: Town) -> None:
    for zone in ("us-east-1a", "us-east-1b"):
        for market in (Market.SPOT, Market.ON_DEMAND):
            town.cloud.capacity.dry.add(Offering("g5.xlarge", zone, market))
    town.report([job(1, gpu_type="a10g")])
    town.look()

    result = town.ask("why", "1")

    assert result.exit_code == 3
    lines = result.output.splitlines()
    assert "the next try is at" in lines[0]
    (told,) = (line for line in lines if "a10g: EC2 said InsufficientInstanceCapacity" in line)
    assert told.count("(refused 1x)") == 4, "a sentence that is piped is one line"
    assert "wait for the next try" in lines[-1]


@pytest.mark.parametrize(("reports", "says"), [(True, "not in the queue"), (False, "reported")])
def test_a_job_that_is_not_there_has_an_exit_code_of_its_own(
    town: Town, reports: bool, says: str
) -> None:
    if reports:
        town.report([job(1)])

    result = town.ask("why", "9")

    assert result.exit_code == 4
    assert says in result.output


@pytest.mark.parametrize("typed", ["2_[1-4%2]", "2_[1,3-9...]", "2"])
def test_tasks_are_found_as_squeue_shows_them_together(town: Town, typed: str) -> None:
    town.report([job("2_1", array_job_id="2")])
    town.look()

    assert town.ask("why", typed).output.startswith("job 2 starts soon")


@pytest.mark.parametrize("typed", ["abc", "7_", "i-0a1b2c3d", "7 8", ""])
def test_what_is_no_job_is_a_usage_error(town: Town, typed: str) -> None:
    """It has not "ended, or is younger"."""
    town.report([job(1)])

    result = town.ask("why", typed)

    assert result.exit_code == 2
    assert "no job id: as squeue shows it, like 7, 7_3 or 7+1" in " ".join(result.output.split())


def test_a_cluster_that_is_not_deployed_is_one_sentence(town: Town) -> None:
    town.client = town.cloud.client  # type: ignore[method-assign]

    result = town.ask("why", "1")

    assert result.exit_code == 1
    assert "is the cluster deployed?" in result.output
