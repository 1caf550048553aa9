"""Signs a call of curl (AWS Signature Version 4): prints the headers as curl's configuration.

    sign.py REGION SERVICE ARGUMENT... <the role's credentials, as the metadata service tells them

The arguments are curl's own: `-H NAME:VALUE`, `-d BODY`, and at the end the address, quoted as S3
does it, its parameters in order. curl signs by itself from 7.87 on. Ubuntu 22.04's 7.81 leaves all
headers of AWS's out of its signature but the date (curl, lib/http_aws_sigv4.c; mended by its pull
request 7966), and S3 refuses headers that are not signed. Source: IAM user guide, "Create a signed
AWS API request". Runs on the image's own Python, which may be 3.9, and in user data between single
quotes.
"""

import hmac
import json
import sys
import time
from hashlib import sha256


def main() -> None:
    region, service, *words = sys.argv[1:]
    role = json.load(sys.stdin)
    body = ""
    told: dict[str, str] = {}
    for option, word in zip(words, words[1:]):  # noqa: B905, RUF007 - Python 3.9 has neither
        if option == "-d":
            body = word
        if option == "-H":
            name, value = word.split(":", 1)
            told[name.lower()] = value.strip()
    host, _, path = words[-1].split("//")[1].partition("/")
    path, _, query = path.partition("?")
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    made = {
        "x-amz-content-sha256": sha256(body.encode()).hexdigest(),
        "x-amz-date": now,
        "x-amz-security-token": role["Token"],
    }
    head = {"host": host, **made, **told}
    names = ";".join(sorted(head))
    lines = [f"{name}:{head[name]}" for name in sorted(head)]
    hashed = head["x-amz-content-sha256"]
    asked = "\n".join(["POST" if body else "GET", "/" + path, query, *lines, "", names, hashed])
    scope = [now[:8], region, service, "aws4_request"]
    way, at, identity = "AWS4-HMAC-SHA256", "/".join(scope), role["AccessKeyId"]
    key = b"AWS4" + role["SecretAccessKey"].encode()
    for word in [*scope, "\n".join([way, now, at, sha256(asked.encode()).hexdigest()])]:
        key = hmac.new(key, word.encode(), sha256).digest()
    said = f"Credential={identity}/{at}, SignedHeaders={names}, Signature={key.hex()}"
    for name, value in {**made, "authorization": f"{way} {said}"}.items():
        if name not in told:
            print("header =", json.dumps(f"{name}: {value}"))


if __name__ == "__main__":
    main()
