"""What a head or a node is told at its boot: user data, and the bundle of its stages.

The nodes' bundle is the same for all clusters of one version, so that an image can hold it: what
differs is in their user data, behind a stub. The head's holds slurm.conf as well, and an SSM
parameter what else differs. Every value is checked when it is made, so none of them can
add a word of shell or a line of configuration. No value is a secret: user data can be read
by anyone who may describe the instance.
"""

from collections.abc import Iterable, Mapping

from userdata.bundle import Bundle, assignments, pack, read, read_stage
from userdata.directory import Directory
from userdata.monitoring import EXPORTER, PACKAGES_OF_HEAD, monitoring_files, monitoring_settings
from userdata.node_bundle import baked_stages, node_bundle
from userdata.packages import (
    ACCOUNTING,
    HEAD,
    LOGIN_PACKAGES,
    LOGIN_PROGRAMS,
    NODE_PROGRAMS,
    PACKAGES,
    PROGRAMS,
    SITE_CHECK,
    asked_for,
    node_packages,
)
from userdata.patterns import check_word
from userdata.repository import Repository, repository_settings
from userdata.site_check import IDLE, PAIRS, TEMPLATES, check_files
from userdata.slurm_conf import slurm_conf, topology_conf, with_settings
from userdata.slurm_values import NodeShape, SlurmConfValues, SlurmPartition, SlurmPool
from userdata.stages import HEAD_STAGES, LOGIN_STAGES, NODE_STAGES
from userdata.submit import submit_files
from userdata.values import (
    BundleAt,
    GpuSettings,
    HeadValues,
    Hook,
    LoginValues,
    MungeSecret,
    NodePool,
    NodeValues,
    Shared,
)

__all__ = [
    "MAX_USER_DATA_BYTES",
    "NODE_STAGES",
    "Bundle",
    "BundleAt",
    "GpuSettings",
    "HeadValues",
    "Hook",
    "LoginValues",
    "MungeSecret",
    "NodePool",
    "NodeShape",
    "NodeValues",
    "Repository",
    "Shared",
    "SlurmConfValues",
    "SlurmPartition",
    "SlurmPool",
    "baked_stages",
    "head_bundle",
    "head_parameter",
    "head_user_data",
    "login_bundle",
    "login_parameter",
    "login_user_data",
    "node_bundle",
    "node_user_data",
    "slurm_conf",
]

MAX_USER_DATA_BYTES = 16_384  # EC2's limit, before base64
MAX_PARAMETER_BYTES = 4096  # Parameter Store's limit, standard tier

_CGROUP_CONF = """\
CgroupPlugin=autodetect
ConstrainCores=yes
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""
# Those whose curl cannot sign (sign.py), or is not known to: Amazon Linux's is a small one.
_SIGNED_APART = ("ubuntu22.04", "ubuntu20.04", "al2023")


def _node_settings(values: NodeValues) -> dict[str, str]:
    return {
        "ROLE": "node",
        "HEAD": f"{values.head_host}:{values.slurmctld_port}",
        "METADATA_USERS": "root",
        "SHAPES": "\n".join(map(_shape_line, values.shapes)),
        "POOLS": "\n".join(_pool_line(pool) for pool in values.pools),
        "REGISTER_WAIT_S": str(values.register_wait_s),
        "SPOT_POLL_S": f"{values.spot_poll_s:g}",
        "ORPHAN_AFTER_S": str(values.orphan_after_s),
        **_node_software(values),
        **repository_settings(values.repository),
        **(values.directory.settings(values.shared.directory) if values.directory else {}),
        "DRIVER_BRANCH": values.driver_branch,
        "POWER_LIMIT_W": str(values.gpu.power_limit_w or ""),
        "GPU_CLOCK_MHZ": str(values.gpu.clock_mhz or ""),
        "COMPUTE_MODE": values.gpu.compute_mode,
        **values.containers.settings,
        "NEURON_URL": values.shared.neuron_url,
        **({"CUDA_URL": values.shared.cuda_url} if values.os == "al2023" else {}),
        "USERS": values.users,
        "LOG_GROUP": values.log_group,
        "MIG": values.gpu.mig,
        **values.gpu.shared,
        "MPS": "yes" if values.gpu.has_mps else "",
        **_job_role_settings(values),
        **({"PREFETCH": " ".join(values.prefetch)} if values.prefetch else {}),
        **values.own_actions,
        **({"THREADS_PER_CORE": "1"} if values.has_one_thread else {}),
        **({} if values.topology is None else {"TOPOLOGY": " ".join(values.topology) or "-"}),
        **_hook_settings("ON_NODE_START", values.on_node_start),
        **_hook_settings("ON_NODE_CONFIGURED", values.on_node_configured),
        **_settings_of_both(values.munge, values.shared),
    }


def _job_role_settings(values: NodeValues) -> dict[str, str]:
    if not values.job_roles:
        return {}
    words = (f"{account}={role}" for account, role in values.job_roles)
    return {"JOB_ROLES": " ".join(words), "CLUSTER": values.cluster}


def _node_software(values: NodeValues) -> dict[str, str]:
    """Node exporter comes with what a node lacks anyway, and no boot fails without it. Amazon Linux
    has no package of it: there it runs where the image has it.
    """
    has_package = values.has_exporters and values.os != "al2023"
    packages = " ".join((node_packages(values.os), *([EXPORTER[1]] if has_package else ())))
    found = _programs(NODE_PROGRAMS, packages, values, values.os)
    return found | ({"EXPORTERS": "yes"} if values.has_exporters else {})


_HEAD_FILES = (
    *("leaving.py", "await.sh", "cluster_id.sh", "qos.sh", "agent_paths.sh"),
    *("tidegate-accounting.sh", "tidegate-user.sh"),
)


def head_bundle(values: HeadValues) -> Bundle:
    """What the head runs at its boot, and again when this has changed."""
    files = {
        "slurm.conf": slurm_conf(values.slurm),
        **_topology_files(values.slurm),
        **{name: read(f"head/{name}") for name in _HEAD_FILES},
        "hooks.sh": read("both/hooks.sh"),
        "tidegate-import.sh": read("node/tidegate-import.sh"),
        # Not in the parameter, which holds 4 KB.
        "on_head_configured": _lines_of(values.on_head_configured),
        **_directory_files(values.directory, values.shared),
        **monitoring_files(values.monitoring),
        **check_files({TEMPLATES: values.check, IDLE: values.idle_check, PAIRS: values.pair_check}),
        **submit_files(has_estimate=values.slurm.has_estimate, advice=values.slurm.advice),
        "cgroup.conf": with_settings(_CGROUP_CONF, values.slurm.cgroup),
    }
    return pack({"head": map(read_stage, HEAD_STAGES)}, files)


def _topology_files(slurm: SlurmConfValues) -> dict[str, str]:
    return {"topology.conf": topology_conf(slurm)} if slurm.has_topology else {}


def _head_settings(values: HeadValues) -> dict[str, str]:
    added = [*HEAD, *(ACCOUNTING if values.slurm.accounting else ())]
    added += [
        *(PACKAGES_OF_HEAD if values.monitoring else ()),
        *(SITE_CHECK if values.check or values.idle_check else ()),
    ]
    return {
        "ROLE": "head",
        "HEAD_NAME": values.slurm.head_name,
        "HEAD_HOST": values.slurm.head_host,
        "METADATA_USERS": f"root {values.agent_user}",
        "AGENT_USER": values.agent_user,
        "AGENT_SHA256": values.agent.sha256 if values.agent else "",
        "CLUSTER": values.slurm.cluster,
        "STATE_DIR": values.slurm.state_dir,
        "DATA_DIR": values.data_dir,
        "EXPORT_TO": values.export_to,
        "UPDATE_POLL_S": f"{values.update_poll_s:g}",
        **values.containers.settings,
        "ON_HEAD_CONFIGURED_S": _limit_s(values.on_head_configured),
        "ACCOUNTING": "yes" if values.slurm.accounting else "",
        "QOS": " ".join(values.slurm.qos) if values.slurm.accounting else "",
        **_programs(
            " ".join((PROGRAMS, *(each[0] for each in added))),
            " ".join((PACKAGES, *(each[1] for each in added))),
            values,
        ),
        **({"DIRECTORY_SECRET": values.directory.secret} if values.directory else {}),
        **monitoring_settings(values.monitoring),
        **repository_settings(values.repository),
        **_settings_of_both(values.munge, values.shared),
    }


def login_bundle(values: LoginValues) -> Bundle:
    """What login nodes run at their boot, and again when this has changed."""
    # Here only sacct and sacctmgr ask for it, and the head's short name is the head's alone.
    found = with_settings(slurm_conf(values.slurm), _accounting_host(values.slurm))
    files = {
        "slurm.conf": found,
        **_topology_files(values.slurm),
        "hooks.sh": read("both/hooks.sh"),
        "on_login_configured": _lines_of(values.on_login_configured),
        **_directory_files(values.directory, values.shared),
    }
    return pack({"login": map(read_stage, LOGIN_STAGES)}, files)


def _accounting_host(slurm: SlurmConfValues) -> Iterable[tuple[str, str]]:
    return (("AccountingStorageHost", slurm.head_host),) if slurm.accounting else ()


def _login_settings(values: LoginValues) -> dict[str, str]:
    return {
        "ROLE": "login",
        "METADATA_USERS": "root",
        "CLUSTER": values.slurm.cluster,
        "UPDATE_POLL_S": f"{values.update_poll_s:g}",
        "USERS_POLL_S": f"{values.users_poll_s:g}",
        "USERS": values.users,
        **values.containers.settings,
        "ON_LOGIN_CONFIGURED_S": _limit_s(values.on_login_configured),
        **_programs(LOGIN_PROGRAMS, LOGIN_PACKAGES, values),
        **({"DIRECTORY_SECRET": values.directory.secret} if values.directory else {}),
        **repository_settings(values.repository),
        **_settings_of_both(values.munge, values.shared),
    }


def login_user_data(values: LoginValues, parameter: str) -> str:
    """The user data of login nodes. `parameter`: the SSM parameter with `login_parameter` in it."""
    settings = {"POINTER": check_word("parameter", parameter)}
    return _stub("login", values.slurm.cluster, settings, "")


def login_parameter(values: LoginValues, bundle: BundleAt) -> str:
    """Where their bundle is, and all they are told beside that. Errors: as `head_parameter`."""
    return _parameter({**_where(bundle), **_login_settings(values), **_made_for_both(values)})


def node_user_data(values: NodeValues, bundle: BundleAt) -> str:
    """The user data of every node that this launch template starts.

    Raises ValueError when it would not fit into EC2's limit.
    """
    settings = {"BOUND_S": str(values.boot_bound_s), **_where(bundle)}
    made = {**_node_settings(values), **_made_for_both(values)}
    # A quoted here-document: nothing in the text is expanded.
    told = f"cat >$env <<'END'\n{assignments(made)}END\n"
    return _stub("node", values.cluster, settings, told, values.os)


def head_user_data(values: HeadValues, parameter: str) -> str:
    """The user data of the head. `parameter`: the SSM parameter with `head_parameter` in it."""
    settings = {"POINTER": check_word("parameter", parameter)}
    return _stub("head", values.slurm.cluster, settings, "")


def head_parameter(values: HeadValues, bundle: BundleAt) -> str:
    """Where the head's bundle is, and all it is told beside that.

    Apart from the user data: a change of that would stop and start the head. Raises ValueError
    when it would not fit into a parameter.
    """
    agent_env = "\n".join(f'{name}="{value}"' for name, value in values.agent_env)
    made = {
        **_where(bundle),
        **_head_settings(values),
        **_made_for_both(values),
        "DATA_VOLUME": values.data_volume,
        "AGENT_ENV": agent_env,
    }
    if values.agent:
        made["AGENT"] = f"{values.agent.bucket}/{values.agent.key}"
    return _parameter(made)


def _parameter(made: Mapping[str, str]) -> str:
    text = assignments(made)
    if len(text.encode()) > MAX_PARAMETER_BYTES:
        raise ValueError(f"{len(text.encode())} bytes; SSM takes {MAX_PARAMETER_BYTES}")
    return text


def _programs(
    programs: str, packages: str, values: NodeValues | HeadValues | LoginValues, os: str = ""
) -> dict[str, str]:
    """What must be there, and what brings it."""
    has = {"directory": bool(values.directory), "lustre": bool(values.shared.lustre)}
    for program, brought_by in asked_for(**has, os=os):
        programs, packages = f"{programs} {program}", f"{packages} {brought_by}"
    return {"PROGRAMS": programs, "PACKAGES": packages if values.installs else ""}


def _directory_files(directory: Directory | None, shared: Shared) -> dict[str, str]:
    """Not in the parameter, which holds 4 KB."""
    if directory is None:
        return {}
    return {
        "sssd.conf": directory.conf(shared.directory),
        "directory-ca.pem": directory.ca_certificate,
    }


def _settings_of_both(munge: MungeSecret, shared: Shared) -> dict[str, str]:
    return {
        **(shared.lustre_source if shared.lustre else {}),
        "MUNGE_WAIT_S": str(munge.wait_s),
        "SHARED_DIR": shared.directory,
        "SHARED_WAIT_S": str(shared.wait_s),
        "EFS_HELPER_URL": shared.helper_url,
    }


def _hook_settings(name: str, hooks: tuple[Hook, ...]) -> dict[str, str]:
    """Most nodes have none, and user data is short."""
    return {name: _lines_of(hooks), f"{name}_S": _limit_s(hooks)} if hooks else {}


def _lines_of(hooks: tuple[Hook, ...]) -> str:
    return "".join(f"{each.line}\n" for each in hooks)


def _limit_s(hooks: tuple[Hook, ...]) -> str:
    """For one try of all of them: each has a minute to come."""
    return str(60 + sum(each.timeout_s + 60 for each in hooks))


def _where(bundle: BundleAt) -> dict[str, str]:
    return {"BUNDLE": f"{bundle.bucket}/{bundle.key}", "SHA256": bundle.sha256}


def _made_for_both(values: HeadValues | LoginValues | NodeValues) -> dict[str, str]:
    """What only the deployment knows."""
    made = {
        "BUS": values.bus,
        "MUNGE_SECRET": values.munge.secret_id,
        "MUNGE_FINGERPRINT": values.munge.fingerprint,
        "FILE_SYSTEM": values.shared.file_system_id,
        "EFS_OPTIONS": values.shared.efs_options,
        **values.shared.mounts,
    }
    return {name: value for name, value in made.items() if value}


def _shape_line(shape: NodeShape) -> str:
    gpus = f"{shape.gpus} {shape.gpu_type or '-'}"
    needs = (
        f"{int(shape.has_nvswitch)} {shape.efa_devices} {shape.min_driver or '-'} {shape.gres_name}"
        f" {shape.instances}"
    )
    return f"{shape.instance_type} {shape.cpus} {shape.memory_mib} {gpus} {shape.weight} {needs}"


def _pool_line(pool: NodePool) -> str:
    return f"{pool.name} {','.join(pool.labels) or '-'}"


def _stub(role: str, cluster: str, settings: Mapping[str, str], told: str, os: str = "") -> str:
    """The script that finds the bundle. `told`: writes down what the bundle's stages need."""
    # A login node is pointed at its bundle as the head is; a node looks at its disk first.
    at, first = ("node/locate", _code("node/first")) if role == "node" else ("head/locate", "")
    once, signed = told + _code(at), signing_lines(os)
    script = f"#!/bin/bash\n# Tidegate {cluster}: {role}\n{_code('stub')}"
    parts = {"settings": assignments(settings), "first": first, "once": once, "signed": signed}
    for name, text in parts.items():
        script = script.replace(f"# @{name}\n", text)
    size = len(script.encode())
    if size >= MAX_USER_DATA_BYTES:
        raise ValueError(f"user data of {size} bytes; EC2 takes {MAX_USER_DATA_BYTES - 1}")
    return script


def signing_lines(os: str) -> str:
    """How the stub signs: by curl where that can, since the signer alone is larger than 1 KB."""
    if os not in _SIGNED_APART:
        return _code("signed")
    _, _, signer = read("sign.py").split('"""')
    return _code("signed_apart").replace("# @sign\n", signer.strip() + "\n")


def _code(path: str) -> str:
    """Without its first line, which is for shellcheck, and without indents, to stay small."""
    lines = read(f"{path}.sh").splitlines()[1:]
    return "".join(f"{line.lstrip()}\n" for line in lines if "# shellcheck" not in line)
