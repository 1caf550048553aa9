"""The owner of a job whose GPUs idle hears of it by mail once a run, and others hear if not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.test_idle_gpus import RULE, idle
from tests.core.test_idle_gpus_explained import seen
from tests.service.conftest import World
from tidegate.core.explain.mail import mail_text
from tidegate.core.explain.notices import notices as notices_of
from tidegate.core.model.gpu_use import IdleAction, IdleRule
from tidegate.core.model.notice import MailEnd, NoticeCode
from tidegate.core.model.slurm import Job
from tidegate.core.planner import plan
from tidegate.service.telling import MAILS_MAX, Owners, Teller
from tidegate.sim.notices import SimNotices
from tidegate.sim.owner_mail import SimMail
from tidegate.wire.notifications_model import OwnersModel

OWNERS = OwnersModel.model_validate(
    {
        "sender": "tidegate@example.org",
        "address": "{user}@example.org",
        "by_user": {"bob": "robert@lab.example.com"},
    }
)
REQUEUE = replace(RULE, action=IdleAction.REQUEUE)


@pytest.fixture
def mail() -> SimMail:
    return SimMail()


def tell(world: World, notices: SimNotices, mail: SimMail, *jobs: Job) -> tuple[list[str], int]:
    """The head has reported so, and a look follows: what became of mails, and what all heard."""
    nodes = seen(*jobs).digest
    assert nodes is not None
    world.report(jobs, nodes.reading.nodes)
    owners = Owners(mail, OWNERS.address_of)
    teller, looked = Teller("test", notices, world.clock, 7200.0, owners), world.look()
    return [each.sentence for each in teller.write(looked)], teller.tell(looked)


def said(notices: SimNotices) -> list[str]:
    return [one.sentence for message in notices.sent for one in message.notices]


def codes(notices: SimNotices) -> set[NoticeCode]:
    return {message.code for message in notices.sent}


def jobs(*users: str) -> list[Job]:
    return [idle(number, user=user) for number, user in enumerate(users, 1)]


def test_each_owner_gets_one_mail_of_all_that_is_new_and_the_team_hears_that_he_did(
    world: World, mail: SimMail
) -> None:
    told = SimNotices()
    first, second, third = jobs("ada", "ada", "bob")

    events, num_told = tell(world, told, mail, first, second, third)
    assert (len(events), num_told) == (2, 3)
    assert events[0] == "jobs 1, 2 of ada: their owner was told by mail"
    assert tell(world, told, mail, first, second, third) == ([], 0)

    (ada, bob) = mail.sent
    assert ada[:2] == ("ada@example.org", "Tidegate test: GPUs of your 2 jobs idle")
    assert bob[:2] == ("robert@lab.example.com", "Tidegate test: GPUs of your job 3 idle")
    assert "Your job 1 has had 1 GPU idle for 2.0 h" in ada[2]
    assert codes(told) == {NoticeCode.GPUS_IDLE}
    assert all(each.endswith("; its owner was told by mail") for each in said(told))


def test_a_run_that_was_requeued_and_idles_again_is_written_of_again(
    world: World, mail: SimMail
) -> None:
    told = SimNotices()

    tell(world, told, mail, idle())
    tell(world, told, mail, idle(restarts=1))

    assert len(mail.sent) == 2
    assert list(told.noted.mails) == ["own-gpus-idle/9/1"], "a run that is over is forgotten"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"is_sandboxed": True, "verified": {"tidegate@example.org"}}, "SES is in its sandbox"),
        ({"verified": set()}, "SES has not verified tidegate@example.org in this region"),
        ({"is_paused": True}, "SES has paused all mail of this account"),
        ({"is_allowed": False}, "the planner's role may not send it: deploy again"),
        ({"suppressed": {"ada@example.org"}}, "the address is on SES's suppression list"),
    ],
)
def test_what_ses_does_not_take_is_told_to_the_team_once_and_not_tried_again(
    world: World, mail: SimMail, changes: dict[str, Any], why: str
) -> None:
    told = SimNotices()
    for name, value in changes.items():
        setattr(mail, name, value)

    (event,), _ = tell(world, told, mail, idle())
    assert tell(world, told, mail, idle()) == ([], 0)

    (sentence,) = said(told)
    assert f"; its owner got no mail, {why}" in sentence
    assert event.startswith(f"job 9 of ada: its owner got no mail, {why}")
    assert (mail.sent, mail.asked) == ([], 1)


@pytest.mark.parametrize("user", ["LAB\\ada", "ada@lab.example", "a" * 65])
def test_a_user_without_an_address_is_told_of_and_nobody_is_asked(
    world: World, mail: SimMail, user: str
) -> None:
    told = SimNotices()

    tell(world, told, mail, idle(user=user))

    assert "notifications.owners has no address of this user: add it to by_user" in said(told)[0]
    assert mail.asked == 0


def test_what_ses_will_take_later_goes_with_a_later_look(world: World, mail: SimMail) -> None:
    told, some = SimNotices(), jobs("ada", "bob", "cleo")
    mail.left = 1

    (ada, bob, _), _ = tell(world, told, mail, *some)
    assert (len(mail.sent), mail.asked) == (1, 2), "after the first refusal nobody else is tried"
    later = "its owner is told by mail as soon as SES takes it"
    assert (ada, bob) == ("job 1 of ada: its owner was told by mail", f"job 2 of bob: {later}")
    assert tell(world, told, mail, *some) == ([], 0), "what waits on is no news"
    mail.left = 9
    assert len(tell(world, told, mail, *some)[0]) == 2
    assert tell(world, told, mail, *some) == ([], 0)

    assert [address for address, *_ in mail.sent] == [
        "ada@example.org",
        "robert@lab.example.com",
        "cleo@example.org",
    ]
    ends = {key: mail.end for key, mail in told.noted.mails.items()}
    assert ends == {f"own-gpus-idle/{n}/0": MailEnd.SENT for n in (1, 2, 3)}
    assert len(said(told)) == 3, "the team hears of each run once"
    assert said(told)[1].endswith(later)


def test_a_look_writes_to_so_many_that_it_ends_in_time(world: World, mail: SimMail) -> None:
    told, some = SimNotices(), jobs(*(f"user{n:02}" for n in range(MAILS_MAX + 3)))

    tell(world, told, mail, *some)
    assert len(mail.sent) == MAILS_MAX
    tell(world, told, mail, *some)

    assert len({address for address, *_ in mail.sent}) == len(mail.sent) == MAILS_MAX + 3


def test_without_owners_in_the_file_nobody_is_written_to(world: World) -> None:
    told = SimNotices()
    digest = seen(idle()).digest
    assert digest is not None
    world.report([idle()], digest.reading.nodes)

    assert Teller("test", told, world.clock, 7200.0).tell(world.look()) == 1
    assert codes(told) == {NoticeCode.GPUS_IDLE}


@pytest.mark.parametrize(
    ("rule", "job", "words"),
    [
        (RULE, idle(), "cancelled 15 min after the warning in its output unless that changes; to"),
        (RULE, idle(), "keep it: scontrol update jobid=9 comment=tidegate:idle-ok."),
        (None, idle(), "it goes on; when its work is done: scancel 9."),
        (REQUEUE, idle(is_requeueable=False), "it goes on; when its work is done: scancel 9."),
    ],
)
def test_the_mail_says_what_follows_and_what_its_owner_can_do(
    rule: IdleRule | None, job: Job, words: str
) -> None:
    snapshot = seen(job, rule=rule)

    found = notices_of(snapshot, plan(snapshot), wait_s=7200.0)

    own = [each for each in found if each.user]
    assert own[0].user == job.user
    assert words in mail_text("dev", own)[1]
