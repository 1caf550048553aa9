"""Head and node as virtual machines that boot their rendered user data, and what must hold there.

    python -m bench.vm [WORD]     all probes, or those whose names hold the word

Prints of each probe what was expected and what happened; exit code 1 when one of them fails.
"""

import os
import sys
import time
from pathlib import Path

from bench.vm.guest import Guest
from bench.vm.jobs import people
from bench.vm.machines import BOOT_S, Machines, became_ready, machines, made_image
from bench.vm.probes import PROBES, Probe
from cdk.agent_package import agent_package
from local import namespaces
from local.waiting import wait_for

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("TIDEGATE_VM_CACHE", "/var/tmp/tidegate-vm"))
LAST_LINES = 1500
PUBLISHED = "stage munge apply"


def boot(made: Machines) -> list[str]:
    """All machines; what did not come up. The node is launched once the head has published the
    fingerprint of its key: nobody asks for nodes before, and one waits for it two minutes at most.
    """
    files, head = made.boot_files(), made.boot_head()
    if not wait_for(lambda: "file server ready" in files.said()):
        return [f"the file server does not come up: {files.said()[-LAST_LINES:]}"]
    if not wait_for(lambda: PUBLISHED in head.said(), BOOT_S):
        return [not_ready(head)]
    node = made.boot_node()
    return [not_ready(guest) for guest in (head, node) if not became_ready(guest)]


def not_ready(guest: Guest) -> str:
    """What its stages found fault with, and what it said last."""
    said = guest.said()
    faults = "\n".join(line for line in said.splitlines() if " failed " in line)
    return f"the {guest.spec.name} does not become ready:\n{faults}\n{said[-LAST_LINES:]}"


def tried(probe: Probe, made: Machines) -> bool:
    began_s = time.monotonic()
    try:
        seen = "; ".join(probe.look(made).splitlines())
    except OSError as error:
        seen = f"no answer: {error}"
    holds = probe.holds(seen)
    print(f"{'ok  ' if holds else 'FAIL'} {probe.name} ({time.monotonic() - began_s:.0f} s)")
    print(f"     expected  {probe.expected}")
    print(f"     happened  {seen}", flush=True)
    return holds


def main(word: str) -> int:
    began_s = time.monotonic()
    # What has to be fetched is, before there is a network of the bench's own.
    image, agent = made_image(CACHE), agent_package(ROOT)
    os.umask(0o022)
    namespaces.enter()
    with machines(image, agent) as made:
        print("boots a file server, a head and a node, without the kernel's help", flush=True)
        if faults := boot(made):
            print("\n".join(faults))
            return 1
        print(f"they are ready after {time.monotonic() - began_s:.0f} s", flush=True)
        people(made)
        results = [tried(probe, made) for probe in PROBES if word in probe.name]
    print(f"{sum(results)} of {len(results)} hold, {time.monotonic() - began_s:.0f} s")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main((*sys.argv[1:], "")[0]))
