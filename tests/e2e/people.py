"""People on a head."""

from local.machine import Machine


def add_user(head: Machine) -> None:
    """alice, who exists on the head only; then what the agent does: publish her."""
    for line in (
        "useradd --uid 2001 -m -s /bin/bash alice",
        "getent passwd alice >/shared/.tidegate/users/passwd",
        "getent group alice >/shared/.tidegate/users/group",
    ):
        done = head.run(["bash", "-c", line])
        assert done.returncode == 0, done.stderr


def home_at_login(head: Machine) -> str:
    """Whose home bob finds himself in, when he has none before he logs in."""
    head.run(["useradd", "--uid", "2002", "-M", "bob"])
    return head.run(["su", "-", "bob", "-c", "stat -c '%n %U' ~"]).stdout.strip()
