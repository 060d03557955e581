"""Runs the Python code of the guides with numpy and the `tet` command.

usage: guide_check.py --tet PROGRAM

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

GUIDE = os.path.join(os.path.dirname(__file__), "..", "docs", "guide", "mmap-read-patterns.md")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tet", required=True)
    tet = os.path.abspath(parser.parse_args().tet)
    with open(GUIDE, encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    assert blocks, "the guide has no Python"
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tercet-guide-") as directory:
        # The blocks call `tet`: the one under test, regardless of other installations.
        os.symlink(tet, os.path.join(directory, "tet"))
        environment = os.environ | {"PATH": directory + os.pathsep + os.environ["PATH"]}
        for shape, chunk in (((7, 5), "3,2"), ((4, 6, 10), "1,6,10")):
            values = np.arange(np.prod(shape), dtype="<f4").reshape(shape)
            source, path = os.path.join(directory, "a.npy"), os.path.join(directory, "a.tet")
            np.save(source, values)
            create = [tet, "create", path, "--force", "--raw", "--from", f"grid={source}", "--chunk", chunk]
            subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
            expected = f"grid {shape} float32 {values.sum()}"
            for block in blocks:
                run = [sys.executable, "-c", block, path, "grid"]
                done = subprocess.run(run, env=environment, capture_output=True, text=True)
                if done.stdout.strip() != expected:
                    failed += 1
                    print(f"failed: expected {expected!r}, found {done.stdout!r}\n{done.stderr}")
    print(f"{2 * len(blocks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
