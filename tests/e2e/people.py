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


KEY = f"ssh-ed25519 {'A' * 68} bob@home"


def people(head: Machine) -> dict[str, str]:
    """What the head's own command says and does, on a head with accounting."""

    def ask(*words: str) -> str:
        done = head.run(["/usr/local/sbin/tidegate-user", *words])
        return f"{done.returncode} {done.stdout}{done.stderr}".strip()

    def run(line: str) -> str:
        return head.run(["bash", "-c", line]).stdout.strip()

    refused = (
        *(("add", "Bob"), ("add", "root"), ("remove", "root"), ("remove", "nobody-there")),
        *(("add", "bob", "--key", "no key"), ("add", "bob", "--shell", "/bin/sh")),
        *(("add", "bob", "--group", "shadow"), ("add", "bob", "--key"), ("list", "all"), ()),
        ("add", "bob", "--account", "not-there"),
    )
    seen = {
        "first": ask("add", "bob", "--key", KEY, "--group", "sound"),
        "again": ask("add", "bob", "--key", KEY),
        "unended": run("f=~bob/.ssh/authorized_keys; truncate -s -1 $f")
        + ask("add", "bob", "--key", f"{KEY}-2")
        + run("grep -c '^ssh-ed25519' ~bob/.ssh/authorized_keys")
        + run("f=~bob/.ssh/authorized_keys; sed -i 2d $f"),
        "refused": "\n".join(ask(*words) for words in refused),
        "key": run(
            "stat -c '%a %U %n' ~bob/.ssh/authorized_keys; wc -l <~bob/.ssh/authorized_keys"
        ),
        "groups": run("id -nG bob"),
        "account": run("sacctmgr -i add account lab") and ask("add", "bob", "--account", "lab"),
        "association": run("sacctmgr -nP show assoc user=bob format=account,user"),
    }
    head.run(["sbatch", "-H", "--wrap=true"], user="bob")
    seen["listed"] = ask("list")
    seen["busy"] = ask("remove", "bob")
    run("scancel -u bob")
    seen["gone"] = ask("remove", "bob")
    seen["carol"] = ask("add", "carol")
    seen["back"] = ask("add", "bob")
    run("mkdir /shared/home/dora")
    seen["taken"] = ask("add", "dora")
    for name in ("bob", "carol"):
        ask("remove", name)
    run("rm -r /shared/home/bob /shared/home/carol /shared/home/dora")
    return seen
