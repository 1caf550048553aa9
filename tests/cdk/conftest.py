"""One synthesized stack for all tests that only read it."""

import os
import sys
from pathlib import Path

import pytest

# Both are read when aws_cdk is imported: its own validation doubles the time of a synthesis,
# and node must not be the machine's.
os.environ["CDK_VALIDATION"] = "false"
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from tests.cdk.made import Stack, dev_file, synthesized


@pytest.fixture(scope="session")
def dev(tmp_path_factory) -> Stack:
    """The stack of clusters/dev.yaml."""
    return synthesized(tmp_path_factory.mktemp("dev"), dev_file())["tidegate-dev"]
