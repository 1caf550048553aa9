"""The local cloud: moto's server in this process, with a market that can be short.

with LocalCloud() as cloud:
    deployed = deploy(cloud, synthesize(cluster_file, out), stack)
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from moto.core.base_backend import BackendDict
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local.blocks import LocalBlocks, install_blocks
from local.capacity import CapacityModel, install_capacity_model
from local.clients import REGION, client_at
from local.connections import Server
from local.direct import ask_here
from local.extensions import install_extensions
from local.front import OBSERVER_KEY, Front, Invoke
from local.iam.authorizer import Authorizer
from local.instance_roles import install_instance_profiles
from local.mail import install_suppression
from local.prices import LocalPrices, install_prices
from local.reservation_changes import install_changes
from local.reservation_groups import install_groups
from local.shims import costs, tables
from local.trouble import Trouble
from local.ultra_blocks import install_ultra_blocks
from tidegate.wire.events import SPOT_DETAIL_TYPE

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")

# moto takes any image id; this one says that it is none.
IMAGE_ID = "ami-00000000000000000"


# How often the server asks whether it is to stop; its own half a second each test would wait.
STOP_POLL_S = 0.02

# The fronts of the clouds that run in this process.
_RUNNING: list[Front] = []


def _forget_everything() -> None:
    kept: Any = BackendDict
    for backends in list(kept._instances):
        backends.reset()


@dataclass(slots=True)
class LocalCloud:
    """moto's server on `host` and `port` (0: any free one). Its state is the process's own.

    moto keeps its backends in module globals, so two of these in one process share them; the
    first of them finds nothing of what an earlier one held.
    `host` must be an IP address: it keeps S3 path-style.
    """

    host: str = "127.0.0.1"
    port: int = 0
    capacity: CapacityModel = field(default_factory=CapacityModel)
    prices: LocalPrices = field(default_factory=LocalPrices)
    blocks: LocalBlocks = field(default_factory=LocalBlocks)
    _front: Front = field(init=False)
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    _server: Server | None = None
    _thread: Thread | None = None

    def __post_init__(self) -> None:
        self._front = Front(DomainDispatcherApplication(create_backend_app), self.prices)

    def __enter__(self) -> "LocalCloud":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        costs.install()
        tables.install()
        if not _RUNNING:
            _forget_everything()
        _RUNNING.append(self._front)
        install_capacity_model(self.capacity, self.blocks)
        install_prices(self.prices, ZONES)
        install_blocks(self.blocks)
        install_groups(self.blocks)
        install_changes(self.blocks)
        install_extensions(self.blocks)
        install_ultra_blocks(self.blocks)
        costs.forget_names()
        install_instance_profiles()
        install_suppression()
        self._server = Server(self.host, self.port, self._front)
        self._thread = Thread(target=self._server.serve_forever, args=(STOP_POLL_S,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        assert self._server, "the local cloud is not running"
        assert self._thread, "the local cloud is not running"
        self._front.troubles.end()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        _RUNNING.remove(self._front)

    @property
    def endpoint_url(self) -> str:
        """Where clients and machines reach this cloud."""
        assert self._server, "the local cloud is not running"
        return f"http://{self.host}:{self._server.server_port}"

    @property
    def authorizer(self) -> Authorizer:
        """IAM's answers about the roles that are deployed here."""
        return self._front.authorizer

    def invoke_by(self, invoke: Invoke) -> None:
        """Have `invoke` run what is called by Lambda's API."""
        self._front.invoke = invoke

    def trouble(self, trouble: Trouble) -> Trouble:
        """Let calls meet this trouble; gives it back, since it knows what is left of it."""
        self._front.troubles.add(trouble)
        return trouble

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to take this cloud for AWS."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
        }

    def client(self, service: str) -> Any:
        """A client of this cloud, set up as the product sets up its own.

        One per service: clients may be shared by threads.
        """
        return self._client(service, "local")

    def observer(self, service: str) -> Any:
        """A client for whoever watches or plays EC2 itself; its calls are not counted.

        It has no connection that could be lost: it asks the front in this process.
        """
        return self._client(service, OBSERVER_KEY)

    def _client(self, service: str, key: str) -> Any:
        if (service, key) not in self._clients:
            made = client_at(self.endpoint_url, service, key)
            self._clients[service, key] = made
            if key == OBSERVER_KEY:
                ask_here(made, self._front)
        return self._clients[service, key]

    def warn_of_interruption(self, instance_id: str) -> None:
        """Put the event that EC2 puts two minutes before it reclaims a spot instance."""
        self.client("events").put_events(
            Entries=[
                {
                    "Source": "aws.ec2",
                    "DetailType": SPOT_DETAIL_TYPE,
                    "Resources": [f"arn:aws:ec2:{ZONES[0]}:instance/{instance_id}"],
                    "Detail": json.dumps(
                        {"instance-id": instance_id, "instance-action": "terminate"}
                    ),
                }
            ]
        )

    def aws_calls(self) -> Counter[str]:
        """API calls that reached this cloud, from here and from machines: name -> count.

        Those of observers are left out.

        Names are IAM's: "ec2:CreateFleet".
        """
        return self._front.snapshot()
