"""The ledger: one DynamoDB table per cluster, every item under one partition key.

    sk                          attributes besides `body` (the record as JSON)
    epoch                       lineage, epoch, committed_by
    digest_seen                 head, started_at_s, sequence, seen_at_s
    launch#<launch id>          status, taken_at_s
    node#<instance id>          phase, gated_for, reclaim_at_s, pending, cordon, interrupted_in,
                                interruption loss, silent_s, reset_said, joined_at_s, launch,
                                stopped_at_s
    resting#<offering>, resting#<offering>#<pool>#<template>
    stuck#<job id>
    override#<id>
    spent#<day or month>        USD by scope (`charges.py`)
    lost#<month>                nodes, lost_gpu_hours, saved_jobs, orphans (`charges.py`)
    pool_history#<pool>
    market
    told                        (`notices.py`)

Attributes that conditions or updates touch live beside the body and win over it. Finished launches
and terminated nodes stay for a week, by which a repeated write is told; looks read what is `open`.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_condition_failed, tolerating
from tidegate.adapters.charges import bills, charge
from tidegate.adapters.dynamodb_notices import interrupt
from tidegate.adapters.dynamodb_writes import Pause, sleep, transact, write
from tidegate.adapters.ledger_items import (
    PARTITION,
    Item,
    closing_update,
    commit_token,
    epoch_update,
    is_own_commit,
    key,
    launch,
    launch_item,
    learnt_put,
    losses,
    node,
    node_put,
    number,
    open_key,
    order_update,
    packed,
    phase_update,
    pool_histories,
    put_if_absent,
    resting_sk,
    seen_market,
    spent,
    stamp,
    stamp_attributes,
    stop_update,
    told_attribute,
    ungating_update,
    unpacked,
)
from tidegate.core.model.calendar import OVERRIDE_KEPT_S, ScheduleOverride
from tidegate.core.model.digest import SEEN_COUNTS_S, Stamp
from tidegate.core.model.errors import Throttled
from tidegate.core.model.events import GpuReset, NodeOrphaned
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import (
    Bill,
    Cordon,
    InterruptionLoss,
    LaunchRecord,
    LaunchStatus,
    NodeRecord,
    Phase,
    Stretch,
)
from tidegate.core.model.market import SeenMarket
from tidegate.core.model.orders import PendingOrder
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting, RestKey
from tidegate.core.model.snapshot import Epoch
from tidegate.core.model.stuck import Stuck
from tidegate.ports import COMMIT_MAX, NO_LOSSES, NO_ORDERS, Clock, Finished, LedgerView
from tidegate.wire.records import (
    CORDON,
    OPEN_INDEX,
    OVERRIDE,
    RESTING,
    SEEN_MARKET,
    STUCK,
    decode,
    encode,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import PutTypeDef, TransactWriteItemTypeDef, UpdateTypeDef

KEPT_S = 7 * 24 * 3600.0

# A refusal is remembered this long after its time, so that the next one rests longer.
RESTING_KEPT_S = 3600.0

# BatchGetItem takes 100 keys.
GET_CHUNK = 100
GET_ATTEMPTS = 5


@frozen
class DynamoLedger:
    """The ledger of one cluster, as one planner sees it.

    `planner` marks the commits of this object, so that a repeated commit is told from an
    equal one of a rival.
    """

    client: "DynamoDBClient"
    table: str
    clock: Clock
    planner: str = field(default_factory=lambda: uuid.uuid4().hex)
    pause: Pause = sleep

    def view(self) -> LedgerView:
        # The epoch first: whatever is committed between the reads then fails our commit.
        with aws_call():
            epoch = self._epoch() or self._draw_lineage()
            items = list(self._items())
        now_s = self.clock.now_s()
        by_kind: dict[str, list[Item]] = {}
        for item in items:
            by_kind.setdefault(item["sk"].split("#")[0], []).append(item)
        stuck = (decode(STUCK, item["body"]) for item in by_kind.get("stuck", ()))
        overrides = (decode(OVERRIDE, item["body"]) for item in by_kind.get("override", ()))
        since_s, seen = now_s - SEEN_COUNTS_S, by_kind.get("digest_seen", ())
        seen = [item for item in seen if float(item["seen_at_s"]) >= since_s]
        return LedgerView(
            epoch=epoch,
            digest_seen=next((stamp(each) for each in seen), None),
            nodes=tuple(node(item) for item in by_kind.get("node", ())),
            launches=tuple(map(launch, by_kind.get("launch", ()))),
            # DynamoDB deletes expired items when it finds the time, up to days later.
            resting=self._remembered(by_kind.get("resting", ())),
            stuck=tuple(one for one in stuck if now_s < one.is_forgotten_at_s),
            overrides=tuple(one for one in overrides if now_s < one.until_s + OVERRIDE_KEPT_S),
            spent=tuple(one for item in by_kind.get("spent", ()) for one in spent(item)),
            losses=tuple(losses(item) for item in by_kind.get("lost", ())),
            pool_history=pool_histories(by_kind),
            seen_market=seen_market(by_kind),
        )

    def nodes(self, instance_ids: Collection[str]) -> tuple[NodeRecord, ...]:
        keys = [packed(key(f"node#{instance_id}")) for instance_id in dict.fromkeys(instance_ids)]
        found: list[Item] = []
        with aws_call():
            for chunk in batched(keys, GET_CHUNK, strict=False):
                found.extend(self._get(chunk))
        return tuple(map(node, found))

    def commit(
        self,
        epoch: Epoch,
        launches: Sequence[LaunchRecord],
        going: Mapping[str, PendingOrder] = NO_ORDERS,
    ) -> bool:
        assert len(launches) + len(going) <= COMMIT_MAX
        token = commit_token(self.planner, epoch, launches, going)
        launches = [record.kept() for record in launches]
        writes: list[TransactWriteItemTypeDef] = [
            epoch_update(self.table, epoch, token),
            *(put_if_absent(self.table, launch_item(record)) for record in launches),
        ]
        writes += [{"Update": order_update(self.table, *each)} for each in going.items()]
        with aws_call():
            # A repeat within ten minutes is answered by DynamoDB from its memory of the token.
            # Later, the condition on the epoch fails, and the token beside the epoch tells whether
            # it was this very commit that moved it. Once the next planner has moved the epoch on,
            # the answer is False although the launches are recorded: they are in the ledger, and
            # the next look finishes them.
            failed = transact(self.client, writes, self.pause, ClientRequestToken=token)
        return failed is None or is_own_commit(failed, token)

    def take_launch(self, launch_id: str) -> bool:
        taken_at = {
            ":taken_at": number(self.clock.now_s()),
            ":recorded": LaunchStatus.RECORDED.value,
        }
        with aws_call():
            return self._update(
                f"launch#{launch_id}",
                "SET taken_at_s = :taken_at",
                taken_at,
                condition="#status = :recorded",
                names={"#status": "status"},
            )

    def finish_launches(self, *finished: Finished) -> None:
        """The status of a launch is never written before its nodes."""
        write(self.client, (p for each in finished for p in self._finishing(each)), self.pause)

    def _finishing(self, finished: Finished) -> Iterator["TransactWriteItemTypeDef"]:
        for one in finished.nodes:
            yield node_put(self.table, one)
        expires_at = int(self.clock.now_s() + KEPT_S)
        yield {"Update": closing_update(self.table, finished, expires_at)}

    def advance_nodes(self, phases: Mapping[str, Phase]) -> None:
        now_s = self.clock.now_s()
        self._write_each(phase_update(self.table, *each, now_s, KEPT_S) for each in phases.items())

    def stop_nodes(self, instance_ids: Collection[str]) -> None:
        now_s = self.clock.now_s()
        self._write_each(stop_update(self.table, each, now_s) for each in instance_ids)

    def charge(self, stretches: Sequence[Stretch]) -> None:
        charge(self.client, self.table, stretches, self.pause)

    def bills(self, days: Collection[str]) -> tuple[Bill, ...]:
        return bills(self.client, self.table, days)

    def interrupt_nodes(
        self,
        reclaim_at_s: Mapping[str, float],
        interruption_losses: Mapping[str, InterruptionLoss] = NO_LOSSES,
    ) -> frozenset[str]:
        losses = interruption_losses
        return interrupt(self.client, self.table, reclaim_at_s, losses, self.pause)

    def note_told(self, told: NodeOrphaned | GpuReset) -> None:
        name, value = told_attribute(told)
        with aws_call():
            self._update(f"node#{told.instance_id}", f"SET {name} = :s", {":s": value})

    def cordon_node(self, instance_id: str, cordon: Cordon) -> bool:
        with aws_call():
            return self._update(
                f"node#{instance_id}",
                "SET cordon = :cordon",
                {":cordon": encode(CORDON, cordon), ":phase": int(Phase.INTERRUPTED)},
                condition="phase < :phase",
            )

    def set_orders(self, orders: Mapping[str, PendingOrder | None]) -> None:
        self._write_each(order_update(self.table, *each) for each in orders.items())

    def ungate(self, instance_ids: Collection[str]) -> None:
        self._write_each(ungating_update(self.table, each) for each in instance_ids)

    def _write_each(self, updates: Iterable["UpdateTypeDef"]) -> None:
        write(self.client, ({"Update": update} for update in updates), self.pause)

    def resting(self, keys: Collection[RestKey]) -> tuple[Resting, ...]:
        packed_keys = [packed(key(resting_sk(each))) for each in sorted(set(keys))]
        with aws_call():
            chunks = batched(packed_keys, GET_CHUNK, strict=False)
            return self._remembered([item for chunk in chunks for item in self._get(chunk)])

    def _remembered(self, items: Iterable[Item]) -> tuple[Resting, ...]:
        # DynamoDB deletes expired items when it finds the time, up to days later.
        now_s = self.clock.now_s()
        found = [decode(RESTING, item["body"]) for item in items]
        known = {one.key: one for one in sorted(found, key=lambda one: (one.key, one.until_s))}
        return tuple(one for one in known.values() if now_s < one.until_s + RESTING_KEPT_S)

    def rest(self, *resting: Resting) -> None:
        write(self.client, ({"Put": self._resting_put(each)} for each in resting), self.pause)

    def _resting_put(self, resting: Resting) -> "PutTypeDef":
        expires_at = int(resting.until_s + RESTING_KEPT_S)
        body = {"body": encode(RESTING, resting), "expires_at": expires_at}
        return {"TableName": self.table, "Item": packed(open_key(resting_sk(resting.key)) | body)}

    def lift(self, *resting: Resting) -> None:
        for each in resting:
            for sk in {resting_sk(each.key), resting_sk((each.offering, each.pool, "", "", ""))}:
                with aws_call():
                    self.client.delete_item(TableName=self.table, Key=packed(key(sk)))

    def watch(self, stuck: Stuck) -> None:
        self._remember(f"stuck#{stuck.job_id}", encode(STUCK, stuck), stuck.is_forgotten_at_s)

    def override_hours(self, override: ScheduleOverride) -> None:
        sk, until_s = f"override#{override.override_id}", override.until_s + OVERRIDE_KEPT_S
        self._remember(sk, encode(OVERRIDE, override), until_s)

    def learn(self, pool_history: PoolHistory) -> bool:
        put = learnt_put(pool_history)
        with aws_call():
            answer = tolerating(
                lambda: self.client.put_item(TableName=self.table, **put), is_condition_failed
            )
        return not isinstance(answer, ClientError)

    def see_market(self, seen: SeenMarket) -> None:
        self._remember("market", encode(SEEN_MARKET, seen), None)

    def _remember(self, sk: str, body: str, until_s: float | None) -> None:
        item = open_key(sk) | {"body": body}
        if until_s is not None:
            item["expires_at"] = int(until_s)
        with aws_call():
            self.client.put_item(TableName=self.table, Item=packed(item))

    def see_digest(self, stamp: Stamp) -> None:
        # The same order as core.model.digest.supersedes, so that a slow planner cannot go back.
        now_s = self.clock.now_s()
        seen = {"seen_at_s": number(now_s)}
        with aws_call():
            tolerating(
                lambda: self.client.put_item(
                    TableName=self.table,
                    Item=packed(open_key("digest_seen") | stamp_attributes(stamp) | seen),
                    ConditionExpression="attribute_not_exists(pk) OR seen_at_s < :counts_since "
                    "OR started_at_s < :started "
                    "OR (started_at_s = :started AND (head <> :head OR #sequence <= :sequence))",
                    ExpressionAttributeNames={"#sequence": "sequence"},
                    ExpressionAttributeValues=packed(
                        {
                            ":head": stamp.head_instance_id,
                            ":started": number(stamp.agent_started_at_s),
                            ":sequence": stamp.sequence,
                            ":counts_since": number(now_s - SEEN_COUNTS_S),
                        }
                    ),
                ),
                is_condition_failed,
            )

    def _epoch(self) -> Epoch | None:
        response = self.client.get_item(
            TableName=self.table, Key=packed(key("epoch")), ConsistentRead=True
        )
        item = unpacked(response.get("Item", {}))
        return Epoch(item["lineage"], int(item["epoch"])) if item else None

    def _draw_lineage(self) -> Epoch:
        """The first epoch of a new table; of two planners that draw at once, one counts."""
        item = key("epoch") | {"lineage": uuid.uuid4().hex[:8], "epoch": 0, "committed_by": ""}
        tolerating(
            lambda: self.client.put_item(
                TableName=self.table,
                Item=packed(item),
                ConditionExpression="attribute_not_exists(pk)",
            ),
            is_condition_failed,
        )
        drawn = self._epoch()
        assert drawn, "the epoch was just written"
        return drawn

    def _items(self) -> Iterator[Item]:
        """Everything that is open."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=OPEN_INDEX,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=packed({":pk": PARTITION}),
        )
        for page in pages:
            yield from map(unpacked, page["Items"])

    def _get(self, keys: Sequence[Any]) -> Iterator[Item]:
        """What exists of these keys; DynamoDB may leave out some of a large answer, or all."""
        left: Any = {self.table: {"Keys": keys, "ConsistentRead": True}}
        for _ in range(GET_ATTEMPTS):
            answer = self.client.batch_get_item(RequestItems=left)
            yield from map(unpacked, answer["Responses"].get(self.table, ()))
            left = answer.get("UnprocessedKeys")
            if not left:
                return
        raise Throttled(f"DynamoDB left out items of {self.table} {GET_ATTEMPTS} times")

    def _update(
        self,
        sk: str,
        change: str,
        values: Item,
        *,
        condition: str = "",
        names: Mapping[str, str] | None = None,
    ) -> bool:
        """Change an item that exists and meets `condition`; whether that was so."""
        more: dict[str, Any] = {"ExpressionAttributeNames": names} if names else {}
        answer = tolerating(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=packed(key(sk)),
                UpdateExpression=change,
                ConditionExpression="attribute_exists(pk)"
                + (f" AND {condition}" if condition else ""),
                ExpressionAttributeValues=packed(values),
                **more,
            ),
            is_condition_failed,
        )
        return not isinstance(answer, ClientError)
