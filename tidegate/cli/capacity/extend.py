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
from tidegate.cli.capacity.note import SHOWN_WITHIN_S, Note
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
        other = note.get("offer")
        if other not in (None, self.offer_id):
            again = note.get("again") or f"tidegate capacity --buy {other}"
            raise BadConfig(
                f"a purchase of {other} is not finished ({self._note.path}): first finish it with"
                f" {again}"
            )
        if found := self._shown():
            self.tell(f"{self.offer_id} was bought before: nothing is bought now")
            return found
        began_s = note.get("at_s")
        if isinstance(began_s, int | float):
            left_s = SHOWN_WITHIN_S - (self.clock.now_s() - began_s)
            if left_s > 0:
                raise BadConfig(
                    f"a purchase of {self.offer_id} has begun, and EC2 does not show it yet;"
                    f" nothing is bought until it must be seen: try again in {left_s / 60:.0f} min"
                )
            if self._note.read() == note:  # and not that of somebody who began meanwhile
                self._note.forget()
        return None

    def _shown(self) -> Extension | None:
        """The extension that EC2 shows as bought by this offer; one whose payment failed is none."""
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
        # In these words, since nothing is more than `nan`.
        if self.at_most is not None and not found.fee <= self.at_most:
            raise BadConfig(
                f"{self.offer_id} costs {found.fee:,.2f} {found.currency} now, more than"
                f" {self.at_most:,.2f}: nothing was bought"
            )
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
        if is_shown:
            self._note.forget()
        elif self._note.path.exists():
            self.tell(
                f"EC2 does not show it yet: {self._note.path} keeps it from being bought twice, and"
                " is removed by the next --buy"
            )
