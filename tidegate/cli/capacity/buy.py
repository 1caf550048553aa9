"""Buys an offer that a person approves, and writes the block into the cluster file.

The order keeps a block from being bought twice or lost: what would be refused is refused before
anything is paid; a note beside the cluster file says that a purchase has begun; the block's id is
told before the file is touched; and who comes again looks for the block before buying.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tidegate.adapters.capacity_blocks import CapacityBlocks
from tidegate.cli.capacity.advise import Wanted
from tidegate.cli.capacity.note import Note, affordable, replace_text
from tidegate.core.explain.capacity import title
from tidegate.core.model.capacity import BlockOffer, Gone
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import BadConfig, Permanent, TidegateError, Transient
from tidegate.ports import Clock
from tidegate.wire.added_reservation import lines, meant, with_reservations
from tidegate.wire.config import load_cluster, parse_cluster, parse_deployed
from tidegate.wire.problems import and_
from tidegate.wire.yaml_file import read_text


@dataclass(frozen=True)
class Purchase:
    """One offer for one cluster file. `at_most`: what it may cost, in its currency; None: as told.

    `approve`: asks the person who pays, `tell`: says something at once.
    """

    offer_id: str
    file: Path
    blocks: CapacityBlocks
    wanted: Wanted
    at_most: float | None
    clock: Clock
    approve: Callable[[str], bool]
    tell: Callable[[str], None]

    def make(self) -> None:
        """Errors: BadConfig, Throttled, NotAuthorized; the sentence says what was bought."""
        bought = self._known()
        if not bought:
            offer = self._offer()
            self._would_be_right(offer)
            if not self.approve(f"buy {title(offer)}; it cannot be given back"):
                raise BadConfig("nothing was bought")
            bought = self._buy(offer)
        self._write(bought)
        self._finish(bought)

    def _known(self) -> Sequence[Reservation]:
        """What an earlier purchase of this offer gave; (): there was none."""
        note = self._own_note()
        if bought := _noted(note, self._note.path):
            return self._known_already(bought)
        if found := self._held():
            return found
        self._note.settle(note, self.offer_id, self.clock.now_s())
        return ()

    def _held(self) -> Sequence[Reservation]:
        """What EC2 shows as bought by this offer."""
        return self._known_already(
            [
                each.reservation
                for each in self.blocks.holdings()
                if each.offer_id == self.offer_id and not each.state.is_lost
            ]
        )

    def _known_already(self, bought: Sequence[Reservation]) -> Sequence[Reservation]:
        if bought:
            was = "was" if len(bought) == 1 else "were"
            self.tell(f"{named(bought)} {was} bought before: nothing is bought now")
        return bought

    def _own_note(self) -> dict[str, object]:
        """Errors: BadConfig, the note is of another purchase, which is not finished."""
        note = self._note.read()
        other = note.get("offer")
        if other in (None, self.offer_id):
            return note
        if bought := _noted(note, self._note.path):
            ours = {each.id for each in load_cluster(self.file).cluster.reservations}
            if all(each.id in ours for each in bought) and self._is_shown(bought):
                self._note.forget()
                return {}
        raise self._note.unfinished(note)

    def _is_shown(self, bought: Sequence[Reservation]) -> bool:
        shown = {each.reservation.id for each in self.blocks.holdings()}
        return all(each.id in shown for each in bought)

    def _offer(self) -> BlockOffer:
        """As EC2 offers it now. Errors: BadConfig, it is gone, or its price is another."""
        asked = self.wanted
        if not (asked.instance_type and asked.nodes and asked.days):
            raise BadConfig(
                f"EC2 is asked for {self.offer_id} again before it is bought: say --type, --nodes"
                " and --days as the line of the offer has them"
            )
        answer = self.blocks.offers(
            asked.instance_type, asked.nodes, asked.days, self.clock.now_s()
        )
        offers = () if isinstance(answer, Gone) else answer
        for each in offers:
            if each.offer_id == self.offer_id and each.unusable:
                raise BadConfig(f"{each.offer_id} is not used: {each.unusable}; nothing was bought")
            if each.offer_id == self.offer_id:
                affordable(each.offer_id, each.fee, each.currency, self.at_most)
                return each
        usable = (each for each in offers if not each.unusable)
        others = "".join(f"\n  {each.offer_id}: {title(each)}" for each in usable)
        now = f"it offers now:{others}" if others else "it offers nothing of that kind now"
        raise BadConfig(f"EC2 offers {self.offer_id} no more, and nothing was bought; {now}")

    def _would_be_right(self, offer: BlockOffer) -> None:
        """Errors: BadConfig, the file would be refused with the block in it, or is read-only."""
        if not self.file.stat().st_mode & 0o222:
            raise BadConfig(f"{self.file} is read-only: make it writable; nothing was bought")
        coming = offer.unnamed()
        text, pools = read_text(self.file), self._pools(coming)
        try:
            parse_deployed(json.dumps(meant(text, coming, pools)), str(self.file))
        except BadConfig as error:
            raise BadConfig(f"with the block {error}\nnothing was bought") from error
        if with_reservations(text, coming, pools) is None:
            self.tell(f"{self.file} cannot be edited safely: its lines will be told instead")

    def _buy(self, offer: BlockOffer) -> Sequence[Reservation]:
        self._note.claim({"offer": offer.offer_id, "at_s": self.clock.now_s()})
        try:
            # Another one may have answered the question sooner, and finished since.
            if found := self._held():
                return found
        except TidegateError:
            self._note.forget()
            raise
        try:
            bought = self.blocks.buy(offer)
        except Transient as error:
            again = f"tidegate capacity --buy {offer.offer_id}"
            raise BadConfig(
                f"{error}\nEC2 may have sold the block or not; it is looked for before anything is"
                f" bought again: {again}"
            ) from error
        except Permanent:
            self._note.forget()
            raise
        if isinstance(bought, Gone):
            self._note.forget()
            raise BadConfig(
                f"EC2 sold {offer.offer_id} to somebody else, nothing was bought: {bought.said}"
            )
        told = [each.reservation for each in bought]
        self.tell(f"bought {named(told)}: {title(offer)}; EC2 says {bought[0].state}")
        note = {"offer": offer.offer_id, "bought": [asdict(each) for each in told]}
        replace_text(self._note.path, json.dumps(note))
        return told

    def _write(self, bought: Sequence[Reservation]) -> None:
        file = load_cluster(self.file)
        pools = self._pools(bought)
        ours = {each.id for each in file.cluster.reservations}
        new = [each for each in bought if each.id not in ours]
        if not new:
            self.tell(f"{self.file} names {named(bought)} already")
        elif (made := with_reservations(read_text(self.file), new, pools)) is None:
            self.tell("\n".join((f"add this to {self.file}:", *lines(new, pools))))
        else:
            parse_cluster(made, str(self.file))
            replace_text(self.file, made)
            stands = "stands" if len(new) == 1 else "stand"
            self.tell(f"{self.file}: {named(new)} {stands} in reservations now")
        self.tell(f"its nodes can be launched after: npx cdk deploy tidegate-{file.cluster.name}")

    def _finish(self, bought: Sequence[Reservation]) -> None:
        """The note stays for whoever comes again before EC2 shows the block."""
        try:
            is_shown = self._is_shown(bought)
        except TidegateError:
            is_shown = False
        if said := self._note.keep_until_shown(is_shown=is_shown):
            self.tell(said)

    @property
    def _note(self) -> Note:
        return Note.beside(self.file)

    def _pools(self, bought: Sequence[Reservation]) -> list[str]:
        return pools_for(load_cluster(self.file).cluster, bought[0])


def named(bought: Sequence[Reservation]) -> str:
    """All of one purchase."""
    return and_([each.id for each in bought])


def _noted(note: Mapping[str, object], path: Path) -> Sequence[Reservation]:
    """What a purchase of the note gave; (): nobody knows. Errors: BadConfig, it was changed.

    Version 0.1 noted a single one.
    """
    said = note.get("bought")
    if not isinstance(said, dict | list):
        return ()
    try:
        found = TypeAdapter(list[Reservation]).validate_python(
            [said] if isinstance(said, dict) else said
        )
    except ValidationError as error:
        raise BadConfig(f"{path}: no block is to be read from it") from error
    return found


def pools_for(cluster: Cluster, of: Reservation) -> list[str]:
    """The pools that will launch into it."""
    return [
        pool.name
        for pool in cluster.pools
        if of.zone in pool.zones
        and any(each.name == of.instance_type for each in pool.instance_types)
        and of.market is Market.CAPACITY_BLOCK
    ]
