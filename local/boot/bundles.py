"""What is in a bundle, and in the user data that fetches it."""

import io
import tarfile

from userdata.render import Bundle


def opened(bundle: Bundle) -> dict[str, str]:
    """Name -> text of every file of a bundle."""
    with tarfile.open(fileobj=io.BytesIO(bundle.tar)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read().decode() for name, file in files.items() if file}


def graph_of(bundle: Bundle, role: str) -> dict[str, tuple[str, ...]]:
    """Stage -> what it needs, in the order of the runner."""
    rows = [line.split() for line in opened(bundle)[f"graph.{role}"].splitlines()]
    return {name: tuple(needs) for name, _, _, _, *needs in rows}


def stub_of(user_data: str) -> str:
    """User data without the settings that are told beside the stub."""
    before, _, told = user_data.partition("cat >$env <<'END'\n")
    return before + told.partition("\nEND\n")[2]
