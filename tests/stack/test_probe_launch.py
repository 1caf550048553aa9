"""`tidegate probe --launch` on the deployed template: a whole run, and each fault by its name."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from moto.sns.models import sns_backends
from typer.testing import CliRunner, Result

from local.deploy import PLACE
from local.stack_world import StackWorld
from tests.stack.broken import CLUSTER_FILE
from tests.stack.probe_head import ProbeHead
from tests.stack.test_silence import denied
from tests.stack.world import stacked
from tidegate.adapters.account import Account
from tidegate.cli.main import app
from tidegate.cli.probe import deployed
from tidegate.cli.probe.budget import KINDS, budgets
from tidegate.cli.probe.cheapest import Cheapest
from tidegate.cli.probe.facts import Fact, Standing, fact_of
from tidegate.cli.probe.launch import CLAIMS, DOING, ENDING, Trial, ring
from tidegate.cli.probe.parts import bell_of, trial_of
from tidegate.core.model.errors import BadConfig

MAIL = "ada@example.com"


@pytest.fixture(scope="module")
def world(broken: Path) -> Iterator[StackWorld]:
    with stacked(broken, CLUSTER_FILE, starts=None) as made:
        sns = made.cloud.client("sns")
        topic = made.physical("AWS::SNS::Topic")
        sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=MAIL)
        yield made


@pytest.fixture
def head(world: StackWorld) -> ProbeHead:
    """Half an hour later, when nothing is left of the test before. A job's id comes once."""
    made = ProbeHead(world)
    made.next_id += len(world.router.invocations)
    if left := world.nodes():
        world.cloud.observer("ec2").terminate_instances(InstanceIds=left)
    made.pass_time(1800)
    world.report()
    return made


class Told(dict[str, Fact]):
    """Facts by code, as they were told."""

    def tell(self, fact: Fact) -> None:
        self[fact.code] = fact

    def standing(self, code: str) -> str:
        return str(self[code].standing)

    def said(self, code: str) -> str:
        return " ".join(self[code].details)


def trial(head: ProbeHead, told: Told) -> Trial:
    file = head.world.file
    return trial_of(file, head.client, head, told.tell, shell=head, pause=head.pause)


def elsewhere(made: Trial, partition: str) -> Cheapest:
    """A node of another pool."""
    file = made.file
    (pool,) = file.cluster.partition(partition).pools  # type: ignore[union-attr]
    kind, offering = next(file.cluster.pool(pool).offerings())  # type: ignore[union-attr]
    return Cheapest(pool, partition, kind, offering, 1.0)


def launched(head: ProbeHead) -> tuple[Told, Trial]:
    told = Told()
    made = trial(head, told)
    made.run()
    return told, made


def asked(head: ProbeHead) -> Told:
    """What needs no launch."""
    told = Told()
    for each in deployed.answers(head.world.file, Account(head.client)):
        told.tell(fact_of(each))
    return told


def test_a_node_boots_runs_a_job_twice_and_everything_is_gone_again(head: ProbeHead):
    said: list[str] = []
    made = trial(head, told := Told())
    made.say = said.append

    made.run()

    assert said == [*DOING.values(), ENDING]
    assert {each: told.standing(each) for each in (*CLAIMS, "all-gone")} == dict.fromkeys(
        (*CLAIMS, "all-gone"), "confirmed"
    ), dict(told)
    assert head.world.nodes() == []
    assert head.job is None
    timed = {each.name: each.took_s for each in made.stages}
    assert timed["GPUs attach, nvidia-smi"] == 4.0
    assert timed["owner rule, EFS, Munge"] == pytest.approx(1.2)
    assert all(took_s is not None for took_s in timed.values())
    assert made.clock.now_s() - made.begun_at_s < 900


def test_a_part_of_the_boot_that_takes_too_long_is_named(head: ProbeHead):
    head.slow = "munge"

    told, _ = launched(head)

    assert told.standing("node-joined") == "refuted"
    assert "owner rule, EFS, Munge: 400 s, not 5" in told.said("node-joined")
    assert told.standing("job-requeued") == "confirmed"


def test_what_it_takes_is_said_before(head: ProbeHead):
    told = trial(head, Told()).told_before()

    assert "launches one g4dn.xlarge (0.22 USD an hour at most)" in told
    assert "at most 15 minutes and 0.05 USD" in told
    assert head.ran == []


def test_the_planner_s_role_may_launch_and_its_dry_runs_launch_nothing(head: ProbeHead):
    told = asked(head)

    assert [told.standing(each) for each in told] == ["confirmed", "confirmed"], dict(told)
    assert head.world.nodes() == []


@pytest.mark.parametrize(
    ("action", "code", "words"),
    [
        ("ec2:CreateFleet", "planner-fleets", "its role needs ec2:CreateFleet"),
        ("iam:PassRole", "planner-instances", "its role needs ec2:RunInstances and iam:PassRole"),
        ("ec2:RunInstances", "planner-instances", "UnauthorizedOperation: "),
    ],
)
def test_a_right_that_the_planner_s_role_lacks_is_named(
    head: ProbeHead, action: str, code: str, words: str
):
    with denied(head.world, action):
        told = asked(head)

    assert [each for each in told if told.standing(each) == "refuted"] == [code]
    assert words in told.said(code)
    assert "pools.small: on-demand: UnauthorizedOperation" in told.said(code)


def test_a_planner_that_is_older_than_the_command_is_not_asked(head: ProbeHead):
    """It knows of no dry runs, and takes the question for a look."""

    def client(service: str) -> Any:
        return AnsweringPlanner(head.world) if service == "lambda" else head.client(service)

    told = Told()
    for each in deployed.answers(head.world.file, Account(client)):
        told.tell(fact_of(each))

    assert {told.standing(each) for each in told} == {"not asked"}
    assert "is older than this command" in told.said("planner-fleets")


def test_a_pool_that_cannot_be_asked_hides_no_other(head: ProbeHead):
    """Its nodes have several interfaces."""
    asked = {"pool": "efa", "market": "spot", "fleet": "", "instance": None}
    denied = asked | {"pool": "t4", "instance": "UnauthorizedOperation: no iam:PassRole"}
    planner = AnsweringPlanner(head.world, answer={"dry_runs": [asked, denied]})
    account = Account(lambda service: planner if service == "lambda" else head.client(service))

    fleets, instances = deployed.answers(head.world.file, account)

    assert fact_of(fleets).standing == "confirmed"
    assert fact_of(instances).standing == "refuted"
    assert (
        "not asked: pool efa, spot: RunInstances takes no subnet" in fact_of(instances).details[1]
    )


@dataclass
class AnsweringPlanner(ProbeHead):
    """A planner that answers this; by default as the version before did."""

    answer: dict[str, Any] = field(default_factory=lambda: {"batchItemFailures": []})

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        assert FunctionName.endswith("-planner")
        assert json.loads(Payload) == {"dry_runs": True}
        return {"Payload": io.BytesIO(json.dumps(self.answer).encode())}


@contextmanager
def unconfirmed(world: StackWorld) -> Iterator[None]:
    """Nobody has followed the link in SNS's mail."""
    kept: Any = sns_backends[PLACE.account][PLACE.region].subscriptions
    (one,) = [each for each in kept.values() if each.endpoint == MAIL]
    arn, one.arn = one.arn, "PendingConfirmation"
    yield
    one.arn = arn


def state_of(world: StackWorld) -> str:
    name = f"{world.deployment.stack_name}-BadEvents"
    (found,) = world.cloud.observer("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return str(found["StateValue"])


def test_an_alarm_rings_once_and_is_still_again(head: ProbeHead):
    told, states = Told(), []

    def tell(fact: Fact) -> None:
        told.tell(fact)
        states.append(state_of(head.world))

    ring(bell_of(head.world.file, head.client), tell)

    assert told.standing("alarm-mail") == "confirmed"
    assert "rang for 1 subscription" in told.said("alarm-mail")
    assert [*states, state_of(head.world)] == ["ALARM", "OK"]


def test_a_subscription_that_nobody_has_confirmed_is_named(head: ProbeHead):
    told = Told()

    with unconfirmed(head.world):
        ring(bell_of(head.world.file, head.client), told.tell)

    assert told.standing("alarm-mail") == "refuted"
    assert "1 subscriptions wait: who has the address follows the link" in told.said("alarm-mail")


def test_a_node_that_others_use_is_left_to_them(head: ProbeHead):
    head.others = "4711\n"

    told, _ = launched(head)

    assert told.standing("all-gone") == "confirmed"
    assert len(head.world.nodes()) == 1
    (*_, last) = [each for each in head.ran if each[:2] == ("scontrol", "update")]
    assert last[-1] == "state=undrain"


@pytest.mark.parametrize("moment", [1, 2, 3, 5, 7, 9])
def test_a_ctrl_c_leaves_nothing_behind(head: ProbeHead, moment: int):
    """Counted in commands and waits: before and after the submission, in the boot, the requeue."""
    head.stops_at, told = moment, Told()

    with pytest.raises(KeyboardInterrupt):
        trial(head, told).run()

    assert head.world.nodes() == []
    assert head.job is None
    assert told.standing("all-gone") == "confirmed", dict(told)
    assert told.keys() == {*CLAIMS, "all-gone"}


def test_a_second_ctrl_c_waits_until_everything_is_gone(head: ProbeHead):
    head.stops_at, head.is_impatient, told = 5, True, Told()

    with pytest.raises(KeyboardInterrupt):
        trial(head, told).run()

    assert head.world.nodes() == []
    assert told.standing("all-gone") == "confirmed"


# What follows keeps the pool from launching for a while.


def test_a_spot_role_that_cannot_be_made_is_named(head: ProbeHead):
    iam = head.world.cloud.observer("iam")
    with suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_service_linked_role(RoleName="AWSServiceRoleForEC2Spot")
    made = trial(head, told := Told())
    made.cheapest = elsewhere(made, "efs")
    with denied(head.world, "iam:CreateServiceLinkedRole"):
        made.run()

    assert told.standing("node-launched") == "refuted"
    assert "service-linked role" in told.said("node-launched")
    assert told.standing("node-joined") == Standing.NOT_ASKED
    assert told.standing("all-gone") == "confirmed"


@pytest.mark.parametrize(
    ("boots", "words"),
    [
        ("fails", "the node gave up in the stage efs"),
        ("never", "no job ran on it until the time was up, it has said nothing of its boot"),
    ],
)
def test_a_node_that_does_not_join_is_named(head: ProbeHead, boots: str, words: str):
    head.boots = boots
    made = trial(head, told := Told())
    made.cheapest = elsewhere(made, {"fails": "munge", "never": "small"}[boots])

    made.run()

    assert told.standing("node-joined") == "refuted", dict(told)
    assert words in told.said("node-joined")
    assert head.world.nodes() == []
    assert told.standing("all-gone") == "confirmed"


def command(head: ProbeHead, *words: str, **more: Any) -> Result:
    """`tidegate probe`, by somebody whose machine has no AWS CLI."""
    given = ["probe", "--cluster", str(CLUSTER_FILE), "--launch", *words]
    return CliRunner().invoke(app, given, obj=head.client, env={"PATH": "/nowhere"}, **more)


def test_who_does_not_agree_launches_nothing(head: ProbeHead):
    result = command(head, input="n\n")

    assert result.exit_code == 1
    assert "at most 15 minutes and 0.05 USD" in result.output
    assert state_of(head.world) == "OK"
    assert head.world.nodes() == []


def test_without_a_session_on_the_head_nothing_is_begun(head: ProbeHead, tmp_path: Path):
    result = command(head, "--yes", "--report", str(tmp_path / "probe.md"))

    facts = json.loads((tmp_path / "probe.json").read_text())["facts"]
    told = {each["code"]: each for each in facts}
    assert result.exit_code in (1, 3)
    assert told["job-accepted"]["standing"] == "not asked"
    assert "there is no aws, the AWS CLI" in told["job-accepted"]["details"][0]
    assert (told["all-gone"]["standing"], told["all-gone"]["details"]) == ("confirmed", [])
    assert MAIL not in (tmp_path / "probe.md").read_text()


def test_an_interrupt_leaves_a_report_of_what_was_known(head: ProbeHead, tmp_path: Path):
    def client(service: str) -> Any:
        if service == "cloudformation":
            raise KeyboardInterrupt
        return head.client(service)

    given = ["probe", "--cluster", str(CLUSTER_FILE), "--report", str(tmp_path / "probe.md")]
    result = CliRunner().invoke(app, given, obj=client)

    assert result.exit_code == 130
    assert '"code": "offerings"' in (tmp_path / "probe.json").read_text()


def test_what_costs_more_than_a_probe_may_is_refused(head: ProbeHead):
    file = head.world.file
    dear = replace(file.cluster, prices=dict.fromkeys(file.cluster.prices, 4.01))

    with pytest.raises(BadConfig, match=r"costs 1\.00 USD: more than the 1 USD that a probe may"):
        trial_of(replace(file, cluster=dear), head.client, head, Told().tell, shell=head)


def test_the_budgets_are_those_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "boot.md").read_text()
    listed = {
        cells[1].strip(): tuple(float(each.strip().split("-")[-1]) for each in cells[2:5])
        for line in page.splitlines()
        if line.count("|") == 6 and re.search(r"\|\s*\d+(-\d+)?\s*\|", line)
        for cells in [re.sub(r";[^|]*", "", line).split("|")]
    }

    for number, kind in enumerate(KINDS):
        for name, budget_s in budgets(kind):
            assert listed[name][number] == budget_s, name
