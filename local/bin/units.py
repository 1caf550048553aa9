"""Starts and stops units for local/bin/systemctl: reads real unit files, starts what they say.

Knows what the bootstrap and its units use: ExecStart, User, EnvironmentFile, drop-ins,
ConditionPathExists, RuntimeDirectory, StateDirectory, Restart, Type simple, forking and oneshot,
RemainAfterExit, PartOf, Limit..., and WantedBy, After and Before of enabled units. A timer is its
service. A unit's output goes to /var/log/units/UNIT.log. `boot` and `shut-down` are process 1's.

A boot asks ten times: with `pathlib`, `re`, `shlex` and `subprocess` a start takes three times as
long. Who asks has its own PATH, so this may run on the system's Python.
"""

import os
import pwd
import resource
import signal
import sys
import time

TRANSIENT = "/run/systemd/transient"
UNIT_DIRS = ("/etc/systemd/system", TRANSIENT, "/usr/lib/systemd/system")
WANTS = "/etc/systemd/system/multi-user.target.wants"
STATE = "/run/units"
STOP_PATIENCE_S = 5.0  # systemd's DefaultTimeoutStopSec is 90 s
POWER_OFF = signal.SIGRTMIN + 4
LIMITS = {"NOFILE": "1024:524288", "MEMLOCK": "8388608"}  # of who asks for nothing


def names_in(folder: str, suffix: str) -> list[str]:
    """Of the files in a folder that end so, in order; none when there is no such folder."""
    if not os.path.isdir(folder):
        return []
    return sorted(name for name in os.listdir(folder) if name.endswith(suffix))


def read(file: str) -> str:
    with open(file) as opened:
        return opened.read()


def write(file: str, text: str) -> None:
    with open(file, "w") as opened:
        opened.write(text)


def remove(file: str) -> None:
    if os.path.lexists(file):
        os.unlink(file)


def bare(word: str) -> str:
    return word.removesuffix(".service").removesuffix(".timer")


def signal_to(pid_file: str, number: int, group: bool = False) -> bool:
    """Whether there was somebody whom it reached: what runs may end at any moment."""
    try:
        os.kill(int(read(pid_file)) * (-1 if group else 1), number)
    except (OSError, ValueError):
        return False
    return True


def is_alive(pid_file: str) -> bool:
    return signal_to(pid_file, 0)


def is_active(name: str) -> bool:
    """It runs, or it is a oneshot with RemainAfterExit that ended well."""
    return is_alive(pid_file_of(name)) or os.path.exists(remains_file_of(name))


def read_unit(name: str) -> dict[str, list[str]]:
    """All settings of a unit and its drop-ins; an empty setting takes back earlier ones."""
    files = [f"{folder}/{name}.service" for folder in UNIT_DIRS]
    found = next((file for file in files if os.path.exists(file)), None)
    if found is None:
        sys.exit(f"Failed to start {name}.service: Unit {name}.service not found.")
    folders = [f"{file}.d" for file in files]
    drop_ins = [f"{folder}/{each}" for folder in folders for each in names_in(folder, ".conf")]
    unit: dict[str, list[str]] = {}
    for file in (found, *sorted(drop_ins)):
        for line in read(file).splitlines():
            key, equals, value = line.strip().partition("=")
            if not equals or key.startswith(("#", ";")):
                continue
            unit[key] = [*unit.get(key, []), value] if value else []
    return unit


def setting(unit: dict[str, list[str]], key: str, default: str = "") -> str:
    return (unit.get(key) or [default])[-1]


def split(text: str) -> list[str]:
    """Words, as a shell splits them."""
    if not {"'", '"', "\\"} & set(text):
        return text.split()
    import shlex

    return shlex.split(text)


def environment(unit: dict[str, list[str]]) -> dict[str, str]:
    env = dict(os.environ) | dict(each.split("=", 1) for each in unit.get("Environment", []))
    for path in unit.get("EnvironmentFile", []):
        file = path.lstrip("-")
        if not os.path.exists(file) and path.startswith("-"):
            continue
        for line in read(file).splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith("#"):
                env[key] = " ".join(split(value)) if value[:1] in "'\"" else value
    return env


def command(unit: dict[str, list[str]], env: dict[str, str]) -> list[str]:
    """ExecStart as systemd reads it: $WORD is split at blanks, ${WORD} is not."""
    argv: list[str] = []
    for word in split(setting(unit, "ExecStart").lstrip("-+!:@")):
        if word[:1] == "$" and word[1:].isidentifier():
            argv += split(env.get(word[1:], ""))
        else:
            argv.append(filled(word, env))
    return argv


def filled(word: str, env: dict[str, str]) -> str:
    before, *others = word.split("${")
    parts = [each.partition("}") for each in others]
    return before + "".join(env.get(name, "") + after for name, _, after in parts)


def make_folders(unit: dict[str, list[str]], user: pwd.struct_passwd) -> None:
    for key, parent in (("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")):
        for name in setting(unit, key).split():
            os.makedirs(f"{parent}/{name}", mode=0o755, exist_ok=True)
            os.chown(f"{parent}/{name}", user.pw_uid, user.pw_gid)


def limits(unit: dict[str, list[str]]) -> dict[int, tuple[int, int]]:
    """The limits of a unit's processes: Limit...=SOFT:HARD, or one number for both."""
    asked = LIMITS | {k[5:]: v[-1] for k, v in unit.items() if k.startswith("Limit") and v}
    found = {}
    for word, value in asked.items():
        parts = [sys.maxsize if n == "infinity" else int(n) for n in value.split(":")]
        found[getattr(resource, f"RLIMIT_{word}")] = (parts[0], parts[-1])
    return found


def set_limits(wanted: dict[int, tuple[int, int]]) -> None:
    """As near as this computer lets root come, like systemd."""
    for kind, (soft, hard) in wanted.items():
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        bounds = [resource.RLIM_INFINITY if n == sys.maxsize else n for n in (soft, hard)]
        resource.setrlimit(kind, (bounds[0], bounds[1]))


def spawn(name: str, unit: dict[str, list[str]]) -> int:
    """Start what the unit says; the new process's id."""
    name_or_id = setting(unit, "User", "root")
    user = pwd.getpwuid(int(name_or_id)) if name_or_id.isdigit() else pwd.getpwnam(name_or_id)
    make_folders(unit, user)
    env = environment(unit) | {"HOME": user.pw_dir, "USER": user.pw_name}
    argv = command(unit, env)
    os.makedirs("/var/log/units", exist_ok=True)
    pid = os.fork()
    if pid:
        return pid
    try:
        become(name, unit, user)
        os.execvpe(argv[0], argv, env)
    except OSError as failed:
        os.write(2, f"{name}: {argv[0]}: {failed}\n".encode())
    os._exit(203)  # systemd's EXIT_EXEC


def become(name: str, unit: dict[str, list[str]], user: pwd.struct_passwd) -> None:
    """Turn this process into what the unit's program expects; it inherits nothing but its log."""
    log = os.open(f"/var/log/units/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.closerange(3, 1000)
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if setting(unit, "Type") == "oneshot":
        os.setsid()
    os.chdir("/")
    set_limits(limits(unit))
    os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def ended(pid: int) -> int:
    """Its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def pid_file_of(name: str) -> str:
    return f"{STATE}/{name}.pid"


def remains_file_of(name: str) -> str:
    """Is there when a oneshot with RemainAfterExit ended well."""
    return f"{STATE}/{name}.remains"


def start(name: str) -> int:
    unit = read_unit(name)
    if is_active(name):
        return 0
    for condition in unit.get("ConditionPathExists", []):
        path = condition.lstrip("|")  # one of several is enough, and there is but one
        if os.path.exists(path.lstrip("!")) == path.startswith("!"):
            print(f"{name}.service: skipped, ConditionPathExists={path} was not met")
            return 0
    os.makedirs(STATE, exist_ok=True)
    if setting(unit, "Type") == "forking":
        code = ended(spawn(name, unit))
        write(pid_file_of(name), read(setting(unit, "PIDFile")) if code == 0 else "")
        return code
    if setting(unit, "Type") == "oneshot":
        return run_oneshot(name, unit)
    if os.fork() == 0:
        os.setsid()
        # systemd's services inherit nothing: a lock would otherwise be held by a daemon.
        os.closerange(3, 1000)
        write(pid_file_of(name), str(os.getpid()))
        supervise(name, unit)
    while not is_alive(pid_file_of(name)):
        time.sleep(0.005)
    return 0


def run_oneshot(name: str, unit: dict[str, list[str]]) -> int:
    """Runs the unit to its end; at boot one that failed runs again as its Restart= says."""
    while True:
        pid = spawn(name, unit)
        write(pid_file_of(name), str(pid))
        code = ended(pid)
        if code == 0 and setting(unit, "RemainAfterExit") == "yes":
            write(remains_file_of(name), "")
        if code == 0 or "--at-boot" not in sys.argv or setting(unit, "Restart", "no") == "no":
            return code
        time.sleep(float(setting(unit, "RestartSec", "0.1").removesuffix("s")))


def supervise(name: str, unit: dict[str, list[str]]) -> None:
    """Run the unit and start it again as its Restart= says, until SIGTERM."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    child = [0]

    def stop(*_: object) -> None:
        os.kill(child[0], signal.SIGTERM)
        os.waitpid(child[0], 0)
        os._exit(0)

    restart = setting(unit, "Restart", "no")
    pause_s = float(setting(unit, "RestartSec", "0.1").removesuffix("s"))
    while True:
        child[0] = spawn(name, unit)
        signal.signal(signal.SIGTERM, stop)
        code = ended(child[0])
        if restart == "no" or (restart.startswith("on-") and code == 0):
            os._exit(code)
        time.sleep(pause_s)


def stop(name: str) -> int:
    """SIGTERM, and SIGKILL for who does not heed it; a oneshot's children too."""
    remove(remains_file_of(name))
    pid_file = pid_file_of(name)
    deadline_s = time.monotonic() + STOP_PATIENCE_S
    signal_to(pid_file, signal.SIGTERM, group=setting(read_unit(name), "Type") == "oneshot")
    while is_alive(pid_file):
        time.sleep(0.01)
        if time.monotonic() > deadline_s:
            signal_to(pid_file, signal.SIGKILL)
    remove(f"{TRANSIENT}/{name}.service")  # is unloaded as it ends
    return 0


def kill(name: str) -> int:
    """`kill -s SIGNAL --kill-who=main UNIT...`: a signal to what its ExecStart became."""
    number = signal.Signals[f"SIG{sys.argv[sys.argv.index('-s') + 1]}"]
    pid = read(pid_file_of(name))
    children = read(f"/proc/{pid}/task/{pid}/children").split()
    for child in children:
        os.kill(int(child), number)
    return 0 if children else 1


def restart_parts_of(name: str) -> int:
    """Active units that are PartOf this one are restarted with it."""
    for file in names_in(UNIT_DIRS[0], ".service"):
        part = bare(file)
        if name in others(read_unit(part), "PartOf") and is_active(part):
            stop(part)
            start(part)
    return 0


def enable(name: str) -> int:
    if "multi-user.target" in setting(read_unit(name), "WantedBy"):
        os.makedirs(WANTS, exist_ok=True)
        link(f"../{name}.service", f"{WANTS}/{name}.service")
    return 0


def link(target: str, at: str) -> None:
    remove(at)
    os.symlink(target, at)


def mask(name: str) -> int:
    """A unit that cannot be started, whatever wants it."""
    link(os.devnull, f"{UNIT_DIRS[0]}/{name}")
    return 0


def unmask(name: str) -> int:
    at = f"{UNIT_DIRS[0]}/{name}"
    if os.path.islink(at) and os.readlink(at) == os.devnull:
        remove(at)
    return 0


def disable(name: str) -> int:
    remove(f"{WANTS}/{name}.service")
    return 0


def boot() -> int:
    """Start what is enabled: all at once, but for what After= and Before= put in an order."""
    from graphlib import TopologicalSorter

    names = {bare(file) for file in names_in(WANTS, ".service")}
    order: TopologicalSorter[str] = TopologicalSorter({name: [] for name in names})
    for name in sorted(names):
        unit = read_unit(name)
        for other in names.intersection(others(unit, "After")):
            order.add(name, other)
        for other in names.intersection(others(unit, "Before")):
            order.add(other, name)
    order.prepare()
    starting: dict[int, str] = {}
    while order.is_active():
        for name in order.get_ready():
            starting[os.spawnlp(os.P_NOWAIT, *["systemctl"] * 2, "start", name, "--at-boot")] = name
        order.done(starting.pop(os.wait()[0]))
    return 0


def others(unit: dict[str, list[str]], key: str) -> list[str]:
    words = " ".join(unit.get(key, [])).split()
    return [word.removesuffix(".service") for word in words if word.endswith(".service")]


def shut_down() -> int:
    """Stop all units, the youngest first, so that none loses what it was started after."""
    files = [f"{STATE}/{file}" for file in names_in(STATE, ".pid")]
    for file in sorted(files, key=lambda file: os.stat(file).st_mtime_ns, reverse=True):
        stop(os.path.basename(file).removesuffix(".pid"))
    return 0


def main() -> int:
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    verb, units = words[0], [bare(word) for word in words[1:]]
    if verb in ("poweroff", "halt", "reboot"):
        os.kill(1, POWER_OFF)
        return 0
    if verb in ("boot", "shut-down"):
        return {"boot": boot, "shut-down": shut_down}[verb]()
    if verb in ("mask", "unmask"):
        return max(map(mask if verb == "mask" else unmask, words[1:]))
    if verb in ("enable", "disable"):
        return max(map(enable if verb == "enable" else disable, units))
    if verb == "kill":
        return max(kill(name) for name in units[1:])
    if verb not in ("start", "stop", "restart"):
        sys.exit(f"the local systemctl does not know: {verb}")
    if "--no-block" in sys.argv and os.fork():
        return 0
    for name in units:
        files = (f"{folder}/{name}.service" for folder in UNIT_DIRS)
        if verb == "stop" and not is_active(name) and not any(map(os.path.exists, files)):
            print(f"Failed to stop {name}: Unit {name} not loaded.", file=sys.stderr)
            return 5
        code = (stop(name) if verb != "start" else 0) or (start(name) if verb != "stop" else 0)
        if code:
            sys.exit(f"Job for {name}.service failed (exit {code}).")
        if verb == "restart":
            restart_parts_of(name)
    return 0
