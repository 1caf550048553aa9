"""Credentials of a role, for the jobs of this node alone: where AWS's SDKs ask when
AWS_CONTAINER_CREDENTIALS_FULL_URI says so.

    job_credentials.py PORT JOBS_DIR ACCOUNT=ROLE... -- COMMAND...

The Prolog makes a folder for each job in JOBS_DIR, with its user's number in `uid`, its name for
CloudTrail in `session` and a secret in `token`, which that user alone can read; the epilog takes
it away. Who asks must hold the token of a job that is there, and be its user. COMMAND BODY sends a
call to STS with the node's own credentials, which nobody but root sees, and prints the answer.

Jobs of a Slurm account that has a role of its own act as that, and all others as that of the
account "", where there is one. Which account a job has is slurmctld's to say. It is asked once, at
the job's first question, so that no job starts later for it.

Sources: AWS SDKs and tools guide, "Container credential provider"; STS, AssumeRole (one hour at
most, since the node's role is assumed itself). Runs on the image's own Python, which may be 3.9.
"""

from __future__ import annotations

import hmac
import json
import re
import subprocess
import sys
import threading
import time
from calendar import timegm
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

HOUR_S = 3600
# SDKs want other ones a quarter of an hour before the end of those that they have.
RENEW_S = 1200.0
# STS is not asked again sooner after it has refused for good: each task of a job asks. What it
# could not answer is asked again at once, since SDKs try three times within two seconds.
REFUSED_S, FAILED_S = 5.0, 0.3
TRIES = 3
NO_ROLE = "NoRole"
FOR_GOOD = (
    *("AccessDenied", "ValidationError", "MalformedPolicyDocument", "RegionDisabledException"),
    NO_ROLE,
)
TIMEOUT_S, SLURM_TIMEOUT_S = 20.0, 10.0
# So many calls of STS side by side, each a few processes.
AT_ONCE = 8
# Who connects and says nothing holds a thread no longer.
SILENCE_S = 5.0
# Of /proc/net/tcp and tcp6: both ends of a connection, and its owner. This machine's own address as
# the kernel writes it there, and as an IPv6 socket has it.
CONNECTION = re.compile(
    r"\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) \S+ \S+ \S+ \S+ +(\d+)"
)
LOCAL = ("0100007F", "0000000000000000FFFF00000100007F")


class Refused(Exception):
    """What the caller is told: a status, a code and a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Held:
    """What STS has said for one job, and until when that is not asked anew."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.until_s = 0.0
        self.role = ""  # "": nobody has asked yet
        self.found: dict[str, str] | Refused = Refused(503, "NoAnswer", "STS was not asked")


class Jobs:
    """Which job a token belongs to, and the credentials of its role. `roles`: ARNs by account."""

    def __init__(
        self, folder: Path, roles: dict[str, str], command: list[str], squeue: str = "squeue"
    ) -> None:
        self.folder, self.roles, self.command, self.squeue = folder, roles, command, squeue
        self._lock = threading.Lock()
        self._asking = threading.Semaphore(AT_ONCE)
        self._held: dict[str, Held] = {}  # by token

    def of(self, token: str, uid: int) -> Path:
        """The folder of the job that holds this token. Errors: Refused."""
        job = token.partition(".")[0]
        if not re.fullmatch(r"[0-9]{1,12}", job):
            raise Refused(403, "AccessDenied", "this is no token of a job")
        folder = self.folder / job
        try:
            known, owner = read(folder / "token"), read(folder / "uid")
        except OSError:
            raise Refused(403, "AccessDenied", f"job {job} is not on this node") from None
        if not hmac.compare_digest(known.encode(), token.encode()):
            raise Refused(403, "AccessDenied", "this is no token of a job that is here")
        if str(uid) != owner:
            raise Refused(403, "AccessDenied", f"job {job} is not yours")
        return folder

    def credentials(self, token: str, uid: int) -> dict[str, str]:
        """As the SDKs read them. Errors: Refused."""
        try:
            session = read(self.of(token, uid) / "session")
        except OSError:  # the epilog came in between
            raise Refused(403, "AccessDenied", "the job has ended") from None
        with self._lock:
            self._forget()
            held = self._held.setdefault(token, Held())
        with held.lock:
            if time.time() >= held.until_s:
                self._renew(held, token.partition(".")[0], session)
            found = held.found
        if isinstance(found, Refused):
            raise found
        return found

    def _renew(self, held: Held, job: str, session: str) -> None:
        asked: dict[str, str] | Refused = held.found
        for number in range(TRIES):
            time.sleep(FAILED_S * number)
            with self._asking:
                asked = self._answer(held, job, session)
            if isinstance(asked, dict):
                held.found, held.until_s = asked, ends_s(asked) - RENEW_S
                return
            if asked.code in FOR_GOOD:
                break
        is_for_good = isinstance(asked, Refused) and asked.code in FOR_GOOD
        held.until_s = time.time() + (REFUSED_S if is_for_good else FAILED_S)
        # Those that are there are good until their end, whatever STS says now.
        if isinstance(held.found, Refused) or time.time() >= ends_s(held.found):
            held.found = asked

    def _forget(self) -> None:
        """Whose job has ended."""
        for token in list(self._held):
            if not (self.folder / token.partition(".")[0] / "token").exists():
                del self._held[token]

    def _answer(self, held: Held, job: str, session: str) -> dict[str, str] | Refused:
        if not held.role:
            role = self._role(job)
            if isinstance(role, Refused):
                return role
            held.role = role
        return self._ask(held.role, session)

    def _role(self, job: str) -> str | Refused:
        """What the job acts as, by its account."""
        if list(self.roles) == [""]:
            return self.roles[""]
        asked = [self.squeue, "--noheader", f"--jobs={job}", "--format=%A %a"]
        try:
            done = subprocess.run(
                asked, capture_output=True, text=True, timeout=SLURM_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Refused(503, "NoAnswer", f"Slurm does not say the account of job {job}: {error}")
        # Of an array all tasks are shown by the number that one of them has.
        lines = (line.split() for line in done.stdout.splitlines())
        account = next((line[1].lower() for line in lines if line[0] == job and line[1:]), "")
        if not account:
            said = done.stderr.strip()[-300:] or "it names none"
            return Refused(503, "NoAnswer", f"Slurm does not say the account of job {job}: {said}")
        if role := self.roles.get(account) or self.roles.get(""):
            return role
        return Refused(403, NO_ROLE, f"jobs of the account {account} have no role on AWS")

    def _ask(self, role: str, session: str) -> dict[str, str] | Refused:
        body = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": role,
            "RoleSessionName": session,
            "DurationSeconds": HOUR_S,
        }
        try:
            done = subprocess.run(
                [*self.command, urlencode(body)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Refused(503, "NoAnswer", f"STS was not reached: {error}")
        found = dict(re.findall(r"<(\w+)>\s*([^<>]+?)\s*</\1>", done.stdout))
        if done.returncode or "SecretAccessKey" not in found:
            said = found.get("Message") or (done.stdout + done.stderr).strip()[-300:] or "no answer"
            return Refused(403, found.get("Code", "AssumeRoleFailed"), said)
        return {
            "AccessKeyId": found["AccessKeyId"],
            "SecretAccessKey": found["SecretAccessKey"],
            "Token": found["SessionToken"],
            "Expiration": found["Expiration"],
            "RoleArn": role,
        }


def read(file: Path) -> str:
    return file.read_text().strip()


def ends_s(credentials: dict[str, str]) -> float:
    at = re.sub(r"\.\d+", "", credentials["Expiration"])
    return timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))


def owner_of(port: int, to: int) -> int | None:
    """Who has opened the connection from this port to ours; None: the kernel does not say."""
    for table in ("tcp", "tcp6"):
        file = Path("/proc/net") / table
        for line in file.read_text().splitlines() if file.exists() else ():
            found = CONNECTION.match(line)
            if found is None or found[1] not in LOCAL or found[3] not in LOCAL:
                continue
            if (int(found[2], 16), int(found[4], 16)) == (port, to):
                return int(found[5])
    return None


class Server(ThreadingHTTPServer):
    """Answers on this machine's own address alone."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, jobs: Jobs) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.jobs = jobs


class Handler(BaseHTTPRequestHandler):
    """One question of an SDK."""

    server: Server
    timeout = SILENCE_S

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "")
        try:
            uid = owner_of(self.client_address[1], self.server.server_port)
            if uid is None:
                raise Refused(403, "AccessDenied", "nobody knows who asks")
            self._say(200, self.server.jobs.credentials(token, uid))
        except Refused as error:
            self._say(error.status, {"code": error.code, "message": str(error)})

    def _say(self, status: int, answer: dict[str, str]) -> None:
        text = json.dumps(answer).encode()
        with suppress(OSError):  # who asked has gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def log_message(self, format: str, *words: object) -> None:
        """Tokens stand in headers, which are not logged; what is asked is always the same."""


def main() -> None:
    port, folder, *words = sys.argv[1:]
    end = words.index("--")
    by_account = (word.partition("=") for word in words[:end])
    roles = {account: role for account, _, role in by_account}
    Server(int(port), Jobs(Path(folder), roles, words[end + 1 :])).serve_forever()


if __name__ == "__main__":
    main()
