"""What Python runs when it is given the agent's folder: our code and the packages beside it.

    python FOLDER [remote-write]

`python FOLDER` puts the folder first on the path. Compiled packages are there for several Pythons
and processors; where they are not (a build of our own code alone), this Python has its own.
"""

import platform
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    target = f"cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
    sys.path[1:1] = [str(HERE / "lib"), str(HERE / target)]
    if sys.argv[1:] == ["remote-write"]:
        from tidegate.agent.remote_write import main as relay

        relay()
    else:
        from tidegate.agent.main import main as agent

        agent()


if __name__ == "__main__":
    main()
