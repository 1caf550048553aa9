"""The nodes of one plan: what each is good for, and how many may leave."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tidegate.core.fleet.abandoned import with_abandoned
from tidegate.core.fleet.allowance import Allowance
from tidegate.core.fleet.judge import Judged, Use, judge
from tidegate.core.fleet.members import Member
from tidegate.core.model.snapshot import Snapshot


class Fleet:
    """Every node that is ours: `members`, what each is good for as `judged`, and in `allowance` how
    many may leave of our own accord.
    """

    def __init__(self, snapshot: Snapshot, members: Sequence[Member]) -> None:
        in_doubt = snapshot.doubted
        self.members = members
        judged = [judge(member, snapshot, in_doubt) for member in members]
        self.judged = with_abandoned(judged, snapshot)
        self.allowance = Allowance(snapshot, self.judged)

    def keeps(self, names: Collection[str], gang: str) -> None:
        """From now on these wait for the gang, as the next plan finds them: no pass lets them go
        or gives them to others.
        """
        self.judged = [
            replace(each, use=Use.GATED, gated_for=gang)
            if each.member.instance_id in names
            else each
            for each in self.judged
        ]

    def leaves(self, going: Judged, why: str) -> None:
        """From now on it takes no job."""
        self.judged = [
            replace(each, use=Use.LEAVING, reason=why) if each is going else each
            for each in self.judged
        ]
