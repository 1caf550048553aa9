"""User data of machines that reach the world through an HTTP proxy."""

from tidegate.wire.deployment import ProxyModel

# The metadata service and the cluster's own names never go through it.
ALWAYS_DIRECT = ("169.254.169.254", "fd00:ec2::254", "localhost", "127.0.0.1", ".internal")


def with_proxy(user_data: str, proxy: ProxyModel | None) -> str:
    """The script, with the proxy set for itself, for later services and logins, and for apt."""
    if proxy is None:
        return user_data
    shebang, _, rest = user_data.partition("\n")
    direct = ",".join([*ALWAYS_DIRECT, *proxy.no_proxy])
    values = {"http_proxy": proxy.url, "https_proxy": proxy.url, "no_proxy": direct}
    lines = [
        f"{name}={value}" for lower, value in values.items() for name in (lower, lower.upper())
    ]
    return "\n".join(
        [
            shebang,
            *(f"export {line}" for line in lines),
            "grep -q ^https_proxy= /etc/environment || cat >>/etc/environment <<'EOF_PROXY'",
            *lines,
            "EOF_PROXY",
            "mkdir -p /etc/systemd/system.conf.d /etc/apt/apt.conf.d",
            "cat >/etc/systemd/system.conf.d/tidegate-proxy.conf <<'EOF_PROXY'",
            "[Manager]",
            f"DefaultEnvironment={' '.join(lines)}",
            "EOF_PROXY",
            f"echo 'Acquire::http::Proxy \"{proxy.url}\";' >/etc/apt/apt.conf.d/90tidegate-proxy",
            f"echo 'Acquire::https::Proxy \"{proxy.url}\";' >>/etc/apt/apt.conf.d/90tidegate-proxy",
            "systemctl daemon-reexec",
            rest,
        ]
    )
