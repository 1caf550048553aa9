"""What a person does with JupyterHub, by its pages and its REST API; run on its login node.

    VENV/bin/python jupyterhub_person.py NAME PASSWORD SILENT_S

Prints as JSON what came of it and when. Needs nothing of this repository.
"""

import html
import http.client
import json
import re
import sys
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

URL = "http://127.0.0.1:8000"
PATIENCE_S = 120.0


class Person:
    """Somebody with a browser: cookies, and the token that keeps forms of other sites out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._cookies)
        )
        self.token = ""

    def ask(self, method: str, path: str, body: Any = None, form: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"token {self.token}"} if self.token else {}
        data = None
        if form is not None:
            data = urllib.parse.urlencode(form).encode()
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        xsrf = {each.value for each in self._cookies if each.name == "_xsrf"}
        if xsrf and not self.token:
            headers["X-XSRFToken"] = min(str(each) for each in xsrf)
        asked = urllib.request.Request(URL + path, data=data, headers=headers, method=method)
        try:
            with self._opener.open(asked, timeout=30) as answer:
                text = answer.read().decode()
                return answer.status, json.loads(text) if text[:1] in "[{" and text else text
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()[-300:]

    def log_in(self, password: str) -> bool:
        """Whether the hub takes the password; afterwards there is a token for its API."""
        self.ask("GET", "/hub/login")
        self.ask("POST", "/hub/login", form={"username": self.name, "password": password})
        code, made = self.ask("POST", f"/hub/api/users/{self.name}/tokens", {})
        self.token = made["token"] if code == 201 else ""
        return bool(self.token)

    def start(self, profile: str) -> int:
        """Choose on the hub's page, as a browser does; the answer's code."""
        token, self.token = self.token, ""
        _, page = self.ask("GET", "/hub/spawn")
        place = html.unescape(re.findall(r'action="([^"]+)"', str(page))[0])
        assert f">{profile}</option>" in page
        code, _ = self.ask("POST", place, form={"profile": profile})
        self.token = token
        return code

    def server(self) -> dict[str, Any]:
        """The notebook as the hub knows it; empty: there is none."""
        _, user = self.ask("GET", f"/hub/api/users/{self.name}")
        found: dict[str, Any] = user["servers"].get("", {})
        return found

    def compute(self, code: str) -> str:
        """What a cell prints."""
        _, kernel = self.ask("POST", f"/user/{self.name}/api/kernels", {"name": "python3"})
        place = f"ws{URL[4:]}/user/{self.name}/api/kernels/{kernel['id']}/channels"
        connect: Callable[..., Any] = import_module("websocket").create_connection
        socket = connect(
            place, header=[f"Authorization: token {self.token}"], timeout=PATIENCE_S * 3
        )
        asked = {"code": code, "silent": False}
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        header |= {"username": self.name, "session": uuid.uuid4().hex, "date": ""}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": asked}
        socket.send(json.dumps({**message, "channel": "shell"}))
        while True:
            said = json.loads(socket.recv())
            if said["msg_type"] in ("stream", "error"):
                socket.close()
                return str(said["content"].get("text") or said["content"]["evalue"])


def wait(until: Callable[[], bool]) -> float:
    """Seconds until it is so; PATIENCE_S when it never is."""
    began_s = time.monotonic()
    while not until() and time.monotonic() - began_s < PATIENCE_S:
        time.sleep(0.5)
    return round(time.monotonic() - began_s, 1)


def look_on(person: Person) -> None:
    while True:
        person.ask("GET", f"/user/{person.name}/api/kernels")
        time.sleep(5)


def is_up() -> bool:
    try:
        return Person("nobody").ask("GET", "/hub/health")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def main(name: str, password: str, silent_s: str) -> None:
    seen: dict[str, Any] = {"hub_up_s": wait(is_up)}
    assert is_up()
    seen["as another"] = Person("eve").log_in(password)
    person = Person(name)
    # Whoever tried it before, Munge takes it once.
    seen["again"] = person.log_in(password)
    print(json.dumps(seen), flush=True)
    seen = {"logged_in": person.log_in(sys.stdin.readline().strip())}
    server = f"/hub/api/users/{name}/server"
    seen["other options"] = person.ask("POST", server, {"options": "--uid=0"})[0]
    seen["no profile"] = person.ask("POST", server, {"profile": "all GPUs"})[0]
    began_s = time.monotonic()
    seen["asked"] = person.start("1 T4, 8 hours")
    seen["ready_s"] = wait(lambda: bool(person.server().get("ready")))
    seen["status"] = person.ask("GET", f"/user/{name}/api/status")
    look = "import os; print(os.uname().nodename, os.environ['CUDA_VISIBLE_DEVICES'], os.getcwd())"
    seen["cell"] = person.compute(look).split()
    seen["first_cell_s"] = round(time.monotonic() - began_s, 1)
    print(json.dumps(seen), flush=True)
    sys.stdin.readline()  # the hub is started again meanwhile
    wait(is_up)
    silent = f"import time; time.sleep({silent_s}); print('computed')"
    seen = {"after a restart": bool(person.server().get("ready")), "silent": person.compute(silent)}
    print(json.dumps(seen), flush=True)
    # A page that stays open asks for kernels all the time.
    threading.Thread(target=look_on, args=(person,), daemon=True).start()
    sys.stdin.readline()  # the job has ended
    print(json.dumps({"hub_knows_s": wait(lambda: not person.server())}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
