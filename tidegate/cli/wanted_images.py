"""The machine images that a cluster file asks for, and the root volumes made from each."""

from collections.abc import Iterator, Mapping

from tidegate.core.model.frozen import frozen
from tidegate.wire.config import ClusterFile
from tidegate.wire.image_names import parent_image, root_device
from tidegate.wire.login import LoginKind
from tidegate.wire.problems import Place


def wanted_images(file: ClusterFile) -> Iterator[tuple[Place, str, str]]:
    """Where the file says it, an image's id or the SSM parameter that has it, and for what."""
    archs = {pool.name: pool.instance_types[0].arch for pool in file.cluster.pools}
    for name, image_id in file.pool_images.items():
        yield ("pools", name, "image"), image_id, archs[name]
    common = [arch for name, arch in archs.items() if name not in file.pool_images]
    is_heads = not (file.head.image or file.existing.head)
    if common or (file.image_id and is_heads):
        node_arch = common[0] if common else file.head.arch  # a rule: an image is of one
        newest = parent_image(node_arch, file.os, installs_driver=file.installs_driver)
        yield ("image",), file.image_id or newest, node_arch
    if file.existing.head:
        return
    if file.head.image or not file.image_id:
        arch = file.head.arch
        yield ("head", "image"), file.head.image or parent_image(arch), arch
    for kind in file.login_kinds:
        arch = kind.model.arch
        if kind.model.image or has_other_image(file, kind):
            yield (*kind.place, "image"), kind.model.image or parent_image(arch), arch


@frozen
class Root:
    """A root volume as a template asks for it.

    `device`: what it takes the image to call its root disk; another name is another disk to EC2.
    """

    gib: int
    device: str


def root_volumes(file: ClusterFile, of: Place) -> Mapping[Place, Root]:
    """Where the file says how large the root volumes from an image are, and what they are."""
    made: dict[Place, Root] = {}
    for name, root in file.root_volumes.items():
        if of == (("pools", name, "image") if name in file.pool_images else ("image",)):
            device = root_device(file.os_of(name))
            made["pools", name, "root_gib"] = Root(root.gib, device)
    # The systems of `cdk/images.py`.
    os_of_head = file.os if file.image_id and not file.head.image else ""
    if not file.existing.head and of == _head_image(file):
        made["head", "root_gib"] = Root(file.head.root_gib, root_device(os_of_head))
    for kind in file.login_kinds:
        if of == _login_image(file, kind):
            device = root_device(os_of_head if of == _head_image(file) else "")
            made[*kind.place, "root_gib"] = Root(kind.model.root_gib, device)
    return made


def has_other_image(file: ClusterFile, kind: LoginKind) -> bool:
    """Whether login nodes have the newest image of AWS's for another architecture than the head."""
    is_own = kind.model.image or file.head.image or file.image_id
    return not is_own and kind.model.arch != file.head.arch


def _login_image(file: ClusterFile, kind: LoginKind) -> Place:
    is_other = kind.model.image or has_other_image(file, kind)
    return (*kind.place, "image") if is_other else _head_image(file)


def _head_image(file: ClusterFile) -> Place:
    """Where the file names the image that the head has."""
    return ("image",) if file.image_id and not file.head.image else ("head", "image")
