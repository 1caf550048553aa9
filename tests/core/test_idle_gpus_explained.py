"""What `why` and `status` say of GPUs that idle in running jobs."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_idle_gpus import RULE, idle, planned, was_told
from tests.make import NOW_S, node, snapshot
from tidegate.core.explain.answer import answer
from tidegate.core.explain.idle_gpus import idle_jobs, idle_owners
from tidegate.core.explain.mail import OwnerMails
from tidegate.core.model.gpu_use import GpuUse, IdleAction, IdleGpus, IdleRule
from tidegate.core.model.notice import Mail, MailEnd, Told
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck


def seen(*jobs: Job, rule: IdleRule | None = RULE, before: tuple[Stuck, ...] = ()) -> Snapshot:
    names = sorted({name for each in jobs for name in each.node_names})
    made = snapshot(jobs, [node(name, state="MIXED+DYNAMIC_NORM", gpus_alloc=1) for name in names])
    policy = IdleGpus(rule) if rule else None
    return replace(made, cluster=replace(made.cluster, idle_gpus=policy), stuck=before)


@pytest.mark.parametrize(
    ("rule", "before", "said"),
    [
        (None, (), "the cluster file has no idle_gpus"),
        (RULE, (), "its owner is told"),
        (RULE, (was_told(restarts=1),), "its owner is told"),
        (RULE, (was_told(ago_s=600.0),), "it is cancelled at 08:05:00 UTC unless that changes"),
        (RULE, (was_told(is_spared=True),), "it goes on: as many jobs as may be"),
        (RULE, (was_told(ended_at_s=NOW_S - 1),), "it was cancelled for that at 07:59:59 UTC"),
    ],
)
def test_why_says_for_how_long_and_what_follows(
    rule: IdleRule | None, before: tuple[Stuck, ...], said: str
) -> None:
    found = answer("9", seen(idle(), rule=rule, before=before), None)

    assert found.headline.endswith("its GPUs have been used for less than 5 % for 2.0 h")
    assert said in "\n".join(found.verdict)


@pytest.mark.parametrize(
    ("restarts", "end", "said"),
    [
        (0, MailEnd.SENT, "its owner was told by mail (2027-01-15 08:00:00 UTC)"),
        (0, MailEnd.REFUSED, "its owner got no mail, SES refused the mail: is the address right?"),
        (1, MailEnd.SENT, "its owner gets a mail with the next look"),
    ],
    ids=["sent", "refused", "of the run before"],
)
def test_why_says_what_became_of_the_mail_of_this_run(
    restarts: int, end: MailEnd, said: str
) -> None:
    key = "own-gpus-idle/9/0"
    mails = OwnerMails("t@example.org", Told({key: NOW_S}, {key: Mail(end, NOW_S)}))

    found = answer("9", seen(idle(restarts=restarts)), None, mails=mails)

    assert found.headline.endswith("less than 5 % for 2.0 h")
    assert found.verdict[1].startswith(said)


def test_why_promises_no_mail_of_a_run_whose_owner_a_version_without_this_memory_wrote_to() -> None:
    mails = OwnerMails("t@example.org", Told({"own-gpus-idle/9/0": NOW_S}))

    (_, said, *_) = answer("9", seen(idle()), None, mails=mails).verdict

    assert said == "its owner was written to, and what became of the mail is not known"


def test_one_that_may_not_be_requeued_is_said_to_go_on() -> None:
    rule = replace(RULE, action=IdleAction.REQUEUE)
    before = (was_told(action=IdleAction.REQUEUE),)

    found = answer("9", seen(idle(is_requeueable=False), rule=rule, before=before), None)

    assert found.verdict[-1] == "it goes on: it may not be requeued (--no-requeue, or no batch job)"


def test_why_says_nothing_of_gpus_that_work_or_may_idle() -> None:
    busy = idle(gpu_use=GpuUse(NOW_S - 10_000, ((90, NOW_S - 60),)))

    assert not answer("9", seen(busy), None).verdict
    assert not answer("9", seen(idle(comment="tidegate:idle-ok")), None).verdict


def test_neuron_devices_are_called_what_they_are() -> None:
    gpu = idle(10)
    neuron = replace(gpu, job_id="9", shape=replace(gpu.shape, gpus=2, gres="neuron"))

    found = answer("9", seen(neuron), None)
    (tell,) = orders(planned(neuron), OrderKind.TELL)
    (owner,) = (said for _, said in idle_owners(seen(neuron)))

    assert found.headline.endswith("its Neuron devices have been used for less than 5 % for 2.0 h")
    assert tell.text.startswith("tidegate: its Neuron devices have been used for less than 5 %")
    assert owner.startswith("your job 9 has had 2 Neuron devices idle for 2.0 h")
    assert next(idle_jobs(seen(neuron))).startswith("2 Neuron devices of running jobs idle: job 9")
    both = next(idle_jobs(seen(gpu, neuron)))
    assert both.startswith("3 GPUs and Neuron devices of running jobs idle: jobs 10 of ada")


def test_status_names_them_the_longest_first_also_without_a_policy() -> None:
    longest = idle(20, gpu_use=GpuUse(NOW_S - 10_400), user="bob")
    jobs = (*(idle(number) for number in range(10, 16)), longest)

    (said,) = idle_jobs(seen(*jobs, rule=None))

    assert said.startswith("7 GPUs of running jobs idle: jobs 20 of bob (2.9 h), 10 of ada (2.0 h)")
    assert said.endswith("13 of ada (2.0 h) and 2 more; tidegate why JOB says what follows")
    assert not list(idle_jobs(seen(idle(gpu_use=None))))
