"""The gate before the local cloud: lets a request through, or says how AWS refuses it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID

from local.iam import answers, reference, s3_rules, spot_role
from local.iam.answers import Answer
from local.iam.authorizer import Authorizer
from local.iam.patterns import NotModelledError
from local.iam.requests import (
    Call,
    Check,
    Signer,
    is_dry_run,
    is_s3_head,
    read_call,
    signer_of,
    token_of,
)
from local.iam.roles import Session, session_of
from local.iam.rules import checks_of

logger = logging.getLogger(__name__)

# moto's own pages, which are no part of AWS.
MOTO_PAGES = "/moto-api"


@dataclass(frozen=True, slots=True)
class Gate:
    """Keys of `administrators` may do everything; others are sessions of roles, or unknown.

    What the evaluator cannot judge is refused, and stands in the log's `not_modelled`.
    """

    authorizer: Authorizer
    administrators: frozenset[str]

    def refusal(self, environ: dict[str, Any]) -> Answer | None:
        """The answer to a request that may not pass; None: it may."""
        signer = signer_of(environ)
        if signer.key in self.administrators or environ["PATH_INFO"].startswith(MOTO_PAGES):
            return None
        if not signer.key:
            return answers.unsigned()
        is_head = is_s3_head(environ)
        try:
            session = session_of(signer.key, DEFAULT_ACCOUNT_ID)
            if session is None or session.token != token_of(environ):
                return answers.unknown_key(signer.service, is_head=is_head)
            return self._judge(read_call(environ, DEFAULT_ACCOUNT_ID), session, is_head=is_head)
        except NotModelledError as gap:
            return self._not_modelled(signer, gap, is_head=is_head)

    def _judge(self, call: Call, session: Session, *, is_head: bool) -> Answer | None:
        checks = checks_of(call)
        _assert_complete(checks)
        if is_dry_run(call):
            # By AWS's word it asks for the rights to this action: what the fleet calls comes later.
            checks = [each for each in checks if not each.is_launch or call.name != "CreateFleet"]
            refused = self._first_refused(checks, session)
            if refused:
                return answers.access_denied(call.service, refused[1], is_head=is_head)
            return None
        refused = self._first_refused(checks, session)
        if refused is None and call.service == "s3":
            missing = s3_rules.check_of_missing(call)
            refused = self._first_refused([missing] if missing else [], session)
        if refused is None:
            return self._without_spot_role(call, session)
        check, message = refused
        if check.is_launch and call.name == "CreateFleet":
            return answers.denied_fleet(call, message)
        return answers.access_denied(call.service, message, is_head=is_head)

    def _without_spot_role(self, call: Call, session: Session) -> Answer | None:
        """EC2 makes the role with the rights of its caller, or refuses every spot instance."""
        if not spot_role.is_missing(call):
            return None
        if not self._first_refused([spot_role.check(call)], session):
            spot_role.make(call)
            return None
        if call.name == "CreateFleet":
            return answers.failed_fleet(call, spot_role.CODE, spot_role.WORDS)
        return answers.refused_by_ec2(spot_role.CODE, spot_role.WORDS)

    def _first_refused(self, checks: Sequence[Check], session: Session) -> tuple[Check, str] | None:
        for check in checks:
            decision = self.authorizer.decide(
                session.role_arn, check.action, check.resource, check.context
            )
            if not decision.is_allowed:
                return check, answers.sentence(session.session_arn, check, decision)
        return None

    def _not_modelled(self, signer: Signer, gap: NotModelledError, *, is_head: bool) -> Answer:
        message = f"unknown to the evaluator: {gap}"
        logger.error("refused a request to %s: %s", signer.service, message)
        self.authorizer.log.add_gap(str(gap))
        return answers.access_denied(signer.service, message, is_head=is_head)


def _assert_complete(checks: Sequence[Check]) -> None:
    """That each action is asked for every type that AWS always asks it for."""
    asked: dict[str, list[str]] = {}
    for each in checks:
        asked.setdefault(each.action, []).append(each.resource)
    for name, resources in asked.items():
        missing = [] if "*" in resources else reference.action(name).missing(resources)
        if missing:
            raise NotModelledError(f"{name} on {', '.join(missing)}")
