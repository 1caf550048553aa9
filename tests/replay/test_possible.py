"""Jobs that no pool can run, or that never end: named, left out, in every policy alike."""

import io

import pytest
from typer.testing import CliRunner

from tests.replay.test_replay import EXACT, FILE, cluster
from tidegate.cli.main import app
from tidegate.cli.progress import progress
from tidegate.sim.replay.run import POLICIES, Replayed, replay
from tidegate.sim.replay.trace import read_trace

HEADER = "job_id,submit_s,duration_s,gpus,nodes,partition,constraint\n"
OTHERS = [each for each in POLICIES if each != "tidegate"]


def played(policy: str, *rows: str, extra: str = "") -> Replayed:
    return replay(read_trace(HEADER + "\n".join(rows)), cluster(extra), EXACT, policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            "x,0,60,1,1,gpu,infiniband",
            "no pool of partition gpu has nodes of its size that meet the constraint infiniband",
        ),
        (
            "x,0,60,8,1,gpu,g5.xlarge",  # it has one GPU
            "no pool of partition gpu has nodes of its size that meet the constraint g5.xlarge",
        ),
        (
            "x,0,60,8,1,gpu,[a",
            "no pool of partition gpu has nodes of its size that meet the constraint [a",
        ),
        (
            "x,0,60,9,1,gpu,",
            "no pool of partition gpu can hold it: g5.48xlarge has 8 GPUs, the job asks 9",
        ),
    ],
)
def test_what_no_pool_can_run_is_named_and_left_out_by_every_policy(policy, row, why):
    ended = played(policy, row, "ok,10,600,1,1,gpu,")
    alone = played(policy, "ok,10,600,1,1,gpu,")

    assert ended.outcome.unmet == ((why, 1),)
    assert ended.outcome.jobs_ended == 1
    assert ended.outcome.cost_usd == alone.outcome.cost_usd


@pytest.mark.parametrize("policy", POLICIES)
def test_a_history_of_nothing_that_can_run_costs_nothing(policy):
    outcome = played(policy, "x,0,60,1,1,gpu,infiniband").outcome

    assert (outcome.jobs_ended, outcome.cost_usd, outcome.launches) == (0, 0.0, 0)


@pytest.mark.parametrize("policy", ["tidegate", "parallelcluster", "karpenter"])
@pytest.mark.parametrize("constraint", ["g5.12xlarge", "[g5.12xlarge|g5.48xlarge]"])
def test_a_job_gets_the_type_that_its_constraint_asks_for(policy, constraint):
    ended = played(policy, f"x,0,600,1,1,gpu,{constraint}")

    (machine,) = ended.world.gone
    assert machine.offering.instance_type == "g5.12xlarge"
    assert ended.outcome.jobs_ended == 1


def test_a_policy_that_buys_what_cannot_help_gives_up():
    """The group has the largest type only."""
    outcome = played("asg", "x,0,600,1,1,gpu,g5.xlarge").outcome

    assert outcome.unmet == (("not started when the replay ended", 1),)


def test_a_job_that_is_longer_than_any_node_lives_is_given_up():
    """Its pool says that its jobs lose a minute at most, and it loses all."""
    spot = "hazards_per_hour: {g5.xlarge: 5.0, g5.12xlarge: 5.0, g5.48xlarge: 5.0}\n"
    made = cluster("checkpoint_s: 9999999", "spot", spot)
    said = "job_id,submit_s,duration_s,gpus,nodes,partition,time_limit_s\n"

    rows = f"x,0,{20 * 86400},1,1,gpu,60\ny,0,60,1,1,gpu,60"
    outcome = replay(read_trace(said + rows), made, EXACT).outcome

    assert outcome.jobs_ended == 1
    assert outcome.unmet == (("interrupted 100 times before its end: set checkpoint_s", 1),)


@pytest.mark.parametrize("policy", OTHERS)
def test_a_model_that_could_buy_nothing_says_so(tmp_path, policy):
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "spot").replace("EXTRA", ""))
    (tmp_path / "jobs.csv").write_text(HEADER + "x,0,60,1,1,gpu,\n")
    words = [f"{tmp_path}/jobs.csv", "--cluster", f"{tmp_path}/lab.yaml", "--policy", policy]

    told = CliRunner().invoke(app, ["replay", *words])

    assert told.exit_code == 1
    assert f"{policy} is modelled to buy on demand only" in told.output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("is_terminal", "least_s"), [(True, 0.0), (True, 60.0), (False, 0.0)])
def test_a_bar_is_shown_to_people_who_wait_and_to_nobody_else(monkeypatch, is_terminal, least_s):
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setenv("TERM", "xterm")

    with progress("lab tidegate", stream, least_s) as tell:
        for done in range(50):
            tell(done, 50)

    is_shown = is_terminal and not least_s
    assert ("lab tidegate" in stream.getvalue()) is is_shown
    assert bool(stream.getvalue()) is is_shown


def test_what_is_printed_beside_a_bar_goes_where_it_was_sent(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()

    with progress("lab tidegate", stream, 0.0) as tell:
        tell(1, 50)
        print("a result")

    assert "lab tidegate" in stream.getvalue()
    assert "a result" in capsys.readouterr().out
