"""SES's suppression list, which moto lacks.

Source: SES API v2 reference, GetSuppressedDestination and PutSuppressedDestination.
"""

import json
import time
from typing import Any
from urllib.parse import unquote

from moto.core.exceptions import JsonRESTError
from moto.sesv2.models import SESV2Backend
from moto.sesv2.responses import SESV2Response
from moto.sesv2.urls import url_paths


class NotSuppressed(JsonRESTError):
    code = 404

    def __init__(self, address: str) -> None:
        super().__init__("NotFoundException", f"Email address {address} does not exist.")


def install_suppression() -> None:
    """SES's answers; for every server and mock of this process."""
    responder: Any = SESV2Response
    backend: Any = SESV2Backend
    paths: Any = url_paths
    backend.suppressed = {}

    def put_suppressed_destination(self: Any) -> str:
        self.sesv2_backend.suppressed[self._get_param("EmailAddress")] = self._get_param("Reason")
        return "{}"

    def get_suppressed_destination(self: Any) -> str:
        address = unquote(self.path.rpartition("/")[2])
        reason = self.sesv2_backend.suppressed.get(address)
        if reason is None:
            raise NotSuppressed(address)
        told = {"EmailAddress": address, "Reason": reason, "LastUpdateTime": time.time()}
        return json.dumps({"SuppressedDestination": told})

    responder.put_suppressed_destination = put_suppressed_destination
    responder.get_suppressed_destination = get_suppressed_destination
    paths["{0}/v2/email/suppression/addresses$"] = SESV2Response.dispatch
    paths["{0}/v2/email/suppression/addresses/(?P<address>[^/]+)$"] = SESV2Response.dispatch
