"""Hooks in the cluster file: what is run as root is said whole, or refused."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems

SHA = "0" * 64
S3 = {"source": "s3://site-hooks/set_up.sh", "args": ["a b"]}
HTTPS = {"source": "https://example.com/set_up.sh", "sha256": SHA, "timeout_s": 60}


def test_a_pools_hooks_come_after_the_clusters(tmp_path: Path) -> None:
    of_cluster = {"on_node_configured": [S3], "on_head_configured": [{"inline": "#!/bin/sh\n"}]}
    file = load(
        tmp_path,
        good({"hooks": of_cluster, "pools.t4.hooks": {"on_node_configured": [HTTPS]}}),
    )

    hooks = file.hooks["t4"]
    assert [each.source for each in hooks.on_node_configured] == [S3["source"], HTTPS["source"]]
    assert (hooks.all[0].args, hooks.all[0].timeout_s, hooks.all[1].sha256) == (("a b",), 300, SHA)
    assert [each.inline for each in file.head_hooks] == ["#!/bin/sh\n"]


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ({"source": "https://example.com/x"}, "sha256 is missing: what comes by http(s) is run as"),
        ({"source": "http://example.com/x"}, "sha256 is missing"),
        ({}, "needs source or inline: one of the two"),
        ({**S3, "inline": "#!/bin/sh"}, "needs source or inline: one of the two"),
        ({"inline": "echo x"}, "its first line must say what runs it, like #!/bin/bash"),
        ({"source": "/opt/x.sh"}, "like s3://bucket/key or https://host/path"),
        ({"source": "s3://bucket/a b"}, "like s3://bucket/key"),
        ({"source": "s3://bucket/*"}, "like s3://bucket/key"),
        ({**S3, "args": ["$(reboot)"]}, "text without quotes, \\, $ and `"),
        ({**S3, "args": ["a\tb"]}, "text without quotes"),
        ({**S3, "timeout_s": 0}, "timeout_s must be 1-3600, is 0"),
        ({**S3, "sha256": "abc"}, "64 hex digits, as sha256sum prints them"),
        ({"inline": "#!" + "x" * 5000}, "user data takes 4096 of a script: put it into S3"),
    ],
)
def test_what_could_not_be_run_or_trusted_is_refused(
    tmp_path: Path, hook: dict[str, object], said: str
) -> None:
    told = problems(tmp_path, good({"hooks.on_node_start": [hook]}))

    assert any(said in line for line in told), told


def test_the_boot_bound_counts_hooks(tmp_path: Path) -> None:
    """900 s, of which 300 are the boot's own."""
    told = problems(tmp_path, good({"hooks.on_node_start": [{**S3, "timeout_s": 600}]}))

    assert told == [
        "timings.boot_bound_s 900, but nodes of pool t4 boot in 300 s (boot_s) and their hooks may"
        " take 600 s more (timeout_s): take at least 960, or lower their timeout_s"
    ]
    load(tmp_path, good({"hooks.on_node_start": [{**S3, "timeout_s": 500}]}))
