"""A moto server that the CDK's own command line can deploy to: `python -m local.moto_server PORT`.

Reach it as http://localhost:PORT, by that word: moto finds a template's bucket by it. It has
our shims and public parameters, but neither IAM nor a router.
"""

import sys
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local.connections import Server
from local.deploy import publish_image_parameters
from local.shims import costs
from local.shims.install import install_shims


def main(arguments: list[str]) -> None:
    """Serve until the process ends."""
    costs.install()
    install_shims()
    publish_image_parameters()
    app: Any = DomainDispatcherApplication(create_backend_app)
    Server("localhost", int(arguments[0]), app).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
