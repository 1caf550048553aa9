"""Buys the extension of a block that a person approves.

As for a block: what would be refused is refused before anything is paid, a note beside the cluster
file says that a purchase has begun, and who comes again looks for the extension before buying. The
file itself stays as it is, since EC2's word for the end of a block counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate.adapters.block_extensions import BlockExtensions
from tidegate.cli.capacity.extensions import block_named
from tidegate.cli.capacity.note import Note, affordable
from tidegate.core.explain.capacity import day, extension_title
from tidegate.core.model.capacity import Extension, ExtensionOffer, ExtensionState, Gone
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.errors import BadConfig, Permanent, TidegateError, Transient
from tidegate.ports import Clock
from tidegate.wire.config import load_cluster


@dataclass(frozen=True)
class ExtensionPurchase:
    """One offer for one block of a cluster file. `at_most`: what it may cost, None: as told.

    `days`: as it was offered for. `approve`: asks who pays, `tell`: says something at once.
    """

    offer_id: str
    block_id: str
    days: int
    file: Path
    asked: BlockExtensions
    at_most: float | None
    clock: Clock
    approve: Callable[[str], bool]
    tell: Callable[[str], None]

    def make(self) -> None:
        """Errors: BadConfig, Throttled, NotAuthorized; the sentence says what was bought."""
        block = block_named(load_cluster(self.file).cluster.reservations, self.block_id)
        bought = self._known()
        if bought is None:
            offer = self._offer(block)
            if not self.approve(f"buy {extension_title(offer)}; it cannot be given back"):
                raise BadConfig("nothing was bought")
            bought = self._buy(offer)
        self._finish(bought)

    @property
    def _note(self) -> Note:
        return Note.beside(self.file)

    @property
    def _again(self) -> str:
        return f"tidegate capacity --extend {self.block_id} --buy {self.offer_id}"

    def _known(self) -> Extension | None:
        """What an earlier purchase of this offer gave; None: there was none, or it failed."""
        note = self._note.read()
        if note.get("offer") not in (None, self.offer_id):
            raise self._note.unfinished(note)
        if found := self._shown():
            self.tell(f"{self.offer_id} was bought before: nothing is bought now")
            return found
        self._note.settle(note, self.offer_id, self.clock.now_s())
        return None

    def _shown(self) -> Extension | None:
        """What EC2 shows as bought by this offer; one whose payment failed is none."""
        for each in self.asked.bought(self.block_id):
            is_bought = each.state is not ExtensionState.PAYMENT_FAILED
            if each.offer_id == self.offer_id and is_bought:
                return each
        return None

    def _offer(self, block: Reservation) -> ExtensionOffer:
        """As EC2 offers it now. Errors: BadConfig, it is gone, or its price is another."""
        if not self.days:
            raise BadConfig(
                f"EC2 is asked for {self.offer_id} again before it is bought: say --days as the"
                " line of the offer has it"
            )
        answer = self.asked.offers(block, self.days)
        offers = () if isinstance(answer, Gone) else answer
        found = next((each for each in offers if each.offer_id == self.offer_id), None)
        if found is None:
            others = "".join(f"\n  {each.offer_id}: {extension_title(each)}" for each in offers)
            said = f": {answer.said}" if isinstance(answer, Gone) else ""
            now = f"it offers now:{others}" if others else f"it offers nothing of that kind{said}"
            raise BadConfig(f"EC2 offers {self.offer_id} no more, and nothing was bought; {now}")
        affordable(found.offer_id, found.fee, found.currency, self.at_most)
        return found

    def _buy(self, offer: ExtensionOffer) -> Extension:
        note = {"offer": offer.offer_id, "at_s": self.clock.now_s(), "again": self._again}
        self._note.claim(note)
        try:
            # Another one may have answered the question sooner, and finished since.
            if found := self._shown():
                return found
        except TidegateError:
            self._note.forget()
            raise
        try:
            bought = self.asked.buy(offer)
        except Transient as error:
            raise BadConfig(
                f"{error}\nEC2 may have sold the extension or not; it is looked for before anything"
                f" is bought again: {self._again}"
            ) from error
        except Permanent:
            self._note.forget()
            raise
        if isinstance(bought, Gone):
            self._note.forget()
            said = f"EC2 sells {offer.offer_id} no more, nothing was bought: {bought.said}"
            raise BadConfig(said)
        self.tell(f"bought {extension_title(offer)}; EC2 says {bought.state}")
        return bought

    def _finish(self, bought: Extension) -> None:
        """The note stays for whoever comes again before EC2 shows the extension."""
        self.tell(
            f"{self.block_id} ends {day(bought.ends_at_s)} once it is paid for, within 12 hours or"
            " 35 min before its present end; the cluster follows EC2, and its file may stay as it"
            " is: tidegate status tells if the payment fails"
        )
        try:
            is_shown = self._shown() is not None
        except TidegateError:
            is_shown = False
        if said := self._note.keep_until_shown(is_shown=is_shown):
            self.tell(said)
