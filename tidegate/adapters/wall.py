"""A word to everybody who is logged in on the head."""

import logging
import subprocess

TIMEOUT_S = 10.0

logger = logging.getLogger(__name__)


def wall(text: str) -> None:
    """Show it on every terminal; without `wall`, or when it fails, the log says so."""
    try:
        subprocess.run(
            ["wall", "--timeout", "5", "--", text],
            check=True,
            timeout=TIMEOUT_S,
            capture_output=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("users were not told %r: %s", text, error)
