"""A deployed cluster: the stack's own template in the local cloud, routed, without machines.

Whoever uses it plays the head and its nodes: it reports digests under the head's deployed role.
"""

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from local.clients import client_at
from local.cloud import LocalCloud
from local.deploy import Deployment
from local.iam.roles import HASH_CHARS
from local.instance_roles import InstanceRoles
from local.router.router import Router
from tidegate.adapters.bus import AwsBus
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.decisions import S3Decisions
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.reports import S3Reports
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.orders import Order, OrderResult
from tidegate.core.model.slurm import Job, Node, Reading
from tidegate.wire.config import ClusterFile
from tidegate.wire.events import encode_look
from userdata.values import NODE_SOURCE

RELEASE = "22.05.8"
# On the head's clock, by which nodes say since when they are idle. How old a digest is S3 says.
READ_AT_S = 1_800_000_000.0


@dataclass(slots=True)
class StackWorld:
    """One deployed cluster, its clocks and its head."""

    cloud: LocalCloud
    deployment: Deployment
    router: Router
    file: ClusterFile
    sequence: int = 0
    started_at_s: float = field(default_factory=time.time)
    bus_kind: type[AwsBus] = AwsBus
    _head: dict[str, Any] = field(default_factory=dict)

    def head(self, service: str) -> Any:
        """A client with the credentials that the head's machine gets."""
        if service not in self._head:
            self._head[service] = self.machine(self.head_id, service)
        return self._head[service]

    def machine(self, instance_id: str, service: str) -> Any:
        """A client with the credentials that an instance gets."""
        observer = self.cloud.observer
        roles = InstanceRoles(observer("ec2"), observer("iam"), observer("sts"))
        given = roles.credentials_of(instance_id)
        return self._client(service, given.access_key_id, given.secret_access_key, given.token)

    def assumed(self, role_arn: str, service: str) -> Any:
        """A client of an AWS service that acts under a role of the cluster."""
        given = self.cloud.observer("sts").assume_role(RoleArn=role_arn, RoleSessionName="service")
        keys = given["Credentials"]
        return self._client(
            service, keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"]
        )

    def _client(self, service: str, key_id: str, secret: str, token: str) -> Any:
        return client_at(self.cloud.endpoint_url, service, key_id, secret, token)

    def restart_head(self) -> None:
        """The head's agent starts anew, on whatever instance is the head now."""
        self.sequence, self.started_at_s = 0, self.started_at_s + 1
        self._head.clear()

    @property
    def head_id(self) -> str:
        (found,) = (
            physical
            for name, (kind, physical) in self.deployment.resources.items()
            if kind == "AWS::EC2::Instance" and name.startswith("HeadInstance")
        )
        return found

    @property
    def bus(self) -> AwsBus:
        return self.bus_kind(
            self.head("s3"),
            self.head("events"),
            self.head("sqs"),
            cluster=self.file.cluster.name,
            bucket=self.physical("AWS::S3::Bucket"),
            event_bus=self.deployment.stack_name,
            urgent_queue_url=self.queue_url("Urgent"),
            routine_queue_url=self.queue_url("Routine"),
        )

    @property
    def decisions(self) -> S3Decisions:
        """As the head reads them."""
        bucket = self.physical("AWS::S3::Bucket")
        return S3Decisions(self.head("s3"), bucket, self.file.cluster.name)

    def ledger(self) -> DynamoLedger:
        """As somebody reads it who is asked for no right."""
        table = self.physical("AWS::DynamoDB::Table")
        return DynamoLedger(self.cloud.observer("dynamodb"), table, SystemClock())

    def physical(self, kind: str, part: str = "") -> str:
        """The physical id of the one resource of a type whose logical id ends with `part`."""
        found = [
            physical
            for name, (type_, physical) in self.deployment.resources.items()
            if type_ == kind and name[:-HASH_CHARS].endswith(part)
        ]
        assert len(found) == 1, (kind, part, found)
        return found[0]

    def queue_url(self, part: str) -> str:
        return self.physical("AWS::SQS::Queue", part)

    def report(
        self,
        jobs: Sequence[Job] = (),
        nodes: Sequence[Node] = (),
        results: Sequence[OrderResult] = (),
    ) -> None:
        """The head's digest: stored, announced, and everything that follows has happened."""
        self.sequence += 1
        stamp = Stamp(self.head_id, self.started_at_s, self.sequence)
        reading = Reading(RELEASE, tuple(jobs), tuple(nodes))
        self.bus.put_digest(
            Digest(self.file.cluster.name, stamp, READ_AT_S, reading, tuple(results))
        )
        self.router.settle()

    def look(self) -> None:
        """The planner looks, although the head has said nothing."""
        self.cloud.observer("sqs").send_message(
            QueueUrl=self.queue_url("QueuesLooks"),
            MessageBody=encode_look("a test", look_id=uuid.uuid4().hex, at="now"),
            MessageGroupId=self.file.cluster.name,
        )
        self.router.settle()

    def put(self, source: str, kind: str, detail: object, *, bus: str = "default") -> None:
        """An event, and everything that follows."""
        entry = {
            "EventBusName": bus,
            "Source": source,
            "DetailType": kind,
            "Detail": json.dumps(detail),
        }
        self.cloud.observer("events").put_events(Entries=[entry])
        self.router.settle()

    def tell_of_boot(self, instance_id: str, kind: str, **members: object) -> None:
        """What a node says of its boot, under its own role (`put_event` in userdata/lib.sh)."""
        detail = {"instance-id": instance_id, "role": "node", **members}
        entry = {
            "EventBusName": self.deployment.stack_name,
            "Source": NODE_SOURCE,
            "DetailType": kind,
            "Detail": json.dumps(detail),
        }
        answer = self.machine(instance_id, "events").put_events(Entries=[entry])
        assert not answer["FailedEntryCount"], answer
        self.router.settle()

    def hand_in(self, period: str, runs: bytes) -> None:
        """Who ran, put by the head; S3 shows when by the router's clock."""
        bucket, cluster = self.physical("AWS::S3::Bucket"), self.file.cluster.name
        S3Reports(self.head("s3"), bucket, cluster).hand_in(period, runs)
        backend: Any = self.router.deployed.place.backend("s3")
        stored = backend.get_object(bucket, f"accounting/{cluster}/{period}.gz")
        stored.last_modified += timedelta(seconds=self.router.clock.offset_s)

    def age_digest(self, by_s: float) -> None:
        """S3 has had the head's last report for so much longer."""
        backend: Any = self.router.deployed.place.backend("s3")
        stored = backend.get_object(self.bus.bucket, self.bus.digest_key)
        stored.last_modified -= timedelta(seconds=by_s)

    def orders(self) -> list[Order]:
        """The orders that wait for the head; taken and acknowledged."""
        bus = self.bus
        received = [
            each for urgent in (True, False) for each in bus.receive_orders(urgent=urgent, wait_s=0)
        ]
        for each in received:
            bus.acknowledge(each)
        return [each.order for each in received]

    def nodes(self) -> list[str]:
        """Instance ids of the nodes that EC2 has."""
        filters = [
            {"Name": "tag-key", "Values": ["tidegate:launch"]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        described = self.cloud.observer("ec2").describe_instances(Filters=filters)
        return sorted(
            one["InstanceId"] for each in described["Reservations"] for one in each["Instances"]
        )

    def head_state(self) -> str:
        described = self.cloud.observer("ec2").describe_instances(InstanceIds=[self.head_id])
        return str(described["Reservations"][0]["Instances"][0]["State"]["Name"])

    def dead_letters(self, part: str) -> list[str]:
        """The bodies in a dead-letter queue; they stay there."""
        answer = self.cloud.observer("sqs").receive_message(
            QueueUrl=self.queue_url(part), MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        return [each["Body"] for each in answer.get("Messages", [])]

    def trouble(self) -> list[str]:
        """Everything that went wrong, as far as anybody was told of it."""
        log, router = self.cloud.authorizer.log, self.router
        return [
            *(f"{each.function_name}: {each.error}" for each in router.invocations if each.error),
            *(f"look: {each['trouble']}" for each in self.looks() if each["trouble"]),
            *(f"not delivered: {each.reason}" for each in router.undelivered),
            *(f"not polled: {each}" for each in router.troubles),
            *(f"denied: {each.action}" for each in log.denied),
            *(f"not modelled: {each}" for each in log.not_modelled),
        ]

    def looks(self) -> list[dict[str, Any]]:
        """The planner's log records of its looks, in order."""
        return [
            json.loads(line)["look"]
            for each in self.router.invocations
            for line in each.lines
            if '"look":' in line
        ]
