"""The table of findings as a node of the bundle has it, in a file of its own."""

from tempfile import NamedTemporaryFile

from userdata.node_bundle import FINDINGS, node_findings

_FILE = NamedTemporaryFile("w", prefix="findings-")  # noqa: SIM115  # as long as the tests run
_FILE.write(node_findings(FINDINGS.read_text()))
_FILE.flush()

NODE_FINDINGS = _FILE.name
