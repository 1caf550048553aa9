"""The stand-in for Lambda: events arrive by the deployed queues, bad ones are dropped."""

import json
import time

from local.cloud import LocalCloud
from local.functions import Functions
from local.resources import CloudNames
from tests.make import cluster, digest, job, placement
from tidegate.service.control import Looked
from tidegate.wiring import Resources, control


def functions_of(cloud: LocalCloud, names: CloudNames, looks: list[Looked]) -> Functions:
    resources = Resources(
        table=names.table,
        bucket=names.bucket,
        event_bus=names.event_bus,
        look_queue_url=names.look_queue_url,
        urgent_queue_url=names.urgent_queue_url,
        routine_queue_url=names.routine_queue_url,
    )
    of = cluster()
    return Functions(
        control(of, resources, placement(of), cloud.client),
        lambda: cloud.client("sqs"),
        names.look_queue_url,
        names.interruption_queue_url,
        looks.append,
    )


def test_a_malformed_event_is_dropped_and_counted_and_the_next_look_happens(
    cloud: LocalCloud, names: CloudNames
) -> None:
    looks: list[Looked] = []
    functions = functions_of(cloud, names, looks)
    for number, body in enumerate(("{not json", json.dumps({"detail-type": "Nothing we know"}))):
        cloud.client("sqs").send_message(
            QueueUrl=names.look_queue_url,
            MessageBody=body,
            MessageGroupId="test",
            MessageDeduplicationId=str(number),
        )
    functions.control.bus.put_digest(digest([job(reason="Dependency")]))
    functions.start()

    until_s = time.monotonic() + 20
    while not looks and time.monotonic() < until_s:
        time.sleep(0.05)
    functions.stop()

    assert functions.dropped == 2
    assert looks[0].rounds[0].plan.unmet[0].reason == "it waits for another job"
