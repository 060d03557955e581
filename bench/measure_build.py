"""CPU time of an optimised build of the engine, and the sizes of its libraries and of the program.

    python bench/measure_build.py --dir DIR [--record FILE.json] [--program]

Builds the `compute` benchmark, with `--program` also the program, in DIR, which must be empty: everything is compiled. The
compiler runs under this script (RUSTC_WRAPPER), which adds the user and system time of each crate to a log.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOG = "TERCET_BUILD_LOG"
ENGINE = {"tercet_tet": "tercet-tet", "tercet_kernel": "tercet-kernel"}


def option(arguments, name):
    """The value of an option of the compiler; None without it."""
    return next((value for key, value in zip(arguments, arguments[1:]) if key == name), None)


def compile_crate(arguments):
    """Runs the compiler, and logs the CPU time of a crate."""
    code = subprocess.run(arguments).returncode
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    if crate := option(arguments, "--crate-name"):
        with open(os.environ[LOG], "a") as log:
            log.write(json.dumps(dict(crate=crate, cpu_s=usage.ru_utime + usage.ru_stime)) + "\n")
    return code


def lines(crate):
    """Lines of the sources of a crate."""
    total = 0
    for directory, _, names in os.walk(os.path.join(ROOT, "crates", crate, "src")):
        for name in names:
            if name.endswith(".rs"):
                with open(os.path.join(directory, name)) as file:
                    total += sum(1 for _ in file)
    return total


def library_bytes(directory, crate):
    """Bytes of the library of a crate."""
    names = (name for name in os.listdir(directory) if name.startswith(f"lib{crate}-") and name.endswith(".rlib"))
    return sum(os.path.getsize(os.path.join(directory, name)) for name in names)


def build(target, arguments, log):
    """Builds with an empty log; returns the wall time and the CPU time of each crate."""
    wrapper = os.path.join(target, "wrapper")
    with open(wrapper, "w") as script:
        script.write(f'#!/bin/sh\nexec "{sys.executable}" "{os.path.abspath(__file__)}" "$@"\n')
    os.chmod(wrapper, 0o755)
    open(log, "w").close()
    environment = {**os.environ, "RUSTC_WRAPPER": wrapper, "CARGO_TARGET_DIR": target, "CARGO_INCREMENTAL": "0", LOG: log}
    start = time.perf_counter()
    subprocess.run(["cargo", "build", "--release", "--locked", *arguments], cwd=ROOT, env=environment, check=True)
    wall = time.perf_counter() - start
    crates = {}
    with open(log) as entries:
        for entry in map(json.loads, entries):
            crates[entry["crate"]] = crates.get(entry["crate"], 0.0) + entry["cpu_s"]
    return wall, crates


def main():
    if LOG in os.environ:
        return compile_crate(sys.argv[1:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True, help="an empty directory")
    parser.add_argument("--record")
    parser.add_argument("--program", action="store_true", help="the program as well")
    options = parser.parse_args()
    target = os.path.abspath(options.dir)
    os.makedirs(target, exist_ok=True)
    if os.listdir(target):
        parser.error(f"{target} is not empty")
    log = os.path.join(target, "log")
    bench = ["--manifest-path", "bench/Cargo.toml", "--no-default-features", "--features", "tet", "--bin", "compute"]
    wall, crates = build(target, bench, log)
    libraries = os.path.join(target, "release", "deps")
    rows = [dict(what="all crates of the benchmark", cpu_s=sum(crates.values()), wall_s=wall)]
    for crate, package in ENGINE.items():
        rows.append(dict(what=package, cpu_s=crates[crate], library_bytes=library_bytes(libraries, crate), lines=lines(package)))
    if options.program:
        wall, crates = build(target, ["--package", "tercet-cli", "--bin", "tercet"], log)
        program = os.path.join(target, "release", "tercet")
        rows.append(dict(what="the program", cpu_s=sum(crates.values()), wall_s=wall, bytes=os.path.getsize(program)))
    for row in rows:
        print("  ".join(f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        compiler = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), rustc=compiler)
        with open(options.record, "w") as out:
            json.dump(dict(commit=commit, machine=machine, rows=rows, when=time.strftime("%Y-%m-%d")), out, indent=1)
            out.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
