"""Sends generated requests to `tercet serve` and compares the responses with its OpenAPI description (schemathesis).

usage: server_check.py --tercet PROGRAM

Every endpoint gets requests that fit the description, most of them with IDs of served files. No response may have a status that the
description does not name, another media type or schema, or report an internal error.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.request

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
# Responses that never end.
STREAMS = {"/api/tgm/{id}/follow"}
EXAMPLES = 40


def check(base):
    schema = schemathesis.openapi.from_url(base + "openapi.json")
    with urllib.request.urlopen(base + "api/files") as answer:
        ids = [file["id"] for file in json.load(answer)["files"]]
    choose = random.Random(7)
    passed, failed = 0, 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in STREAMS:
            continue
        problems = set()

        @seed(11)
        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                  phases=[Phase.generate])
        @given(case=operation.as_strategy())
        def run(case):
            nonlocal passed
            values = case.path_parameters or {}
            for name, likely in (("id", ids), ("dataset", ["t2m", "temperature", "lat"]), ("message", [0]), ("object", [0])):
                if name in values and choose.random() < 0.8:
                    values[name] = choose.choice(likely)
            response = case.call(base_url=base.rstrip("/"))
            if response.status_code == 500:
                problems.add(f"500: {response.text[:300]}")
                return
            try:
                case.validate_response(response, checks=CHECKS)
                passed += 1
            except BaseExceptionGroup as failures:
                problems.update(f"{response.status_code}: {failure!r}"[:300] for failure in failures.exceptions)

        run()
        for problem in sorted(problems):
            failed += 1
            print(f"failed: {operation.path}: {problem}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", required=True)
    tercet = os.path.abspath(parser.parse_args().tercet)
    with tempfile.TemporaryDirectory(prefix="tercet-serve-") as directory:
        served = os.path.join(directory, "demo")
        subprocess.run([tercet, "demo", served, "-q"], check=True, stdout=subprocess.DEVNULL)
        command = [tercet, "serve", served, "--addr", "127.0.0.1:0", "--log", "off"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            base = re.search(r"http://\S+", server.stdout.readline()).group()
            passed, failed = check(base)
        finally:
            server.terminate()
            code = server.wait(timeout=30)
    if code != 0:
        failed += 1
        print(f"failed: the server ended with {code}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
