#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests for 64-bit ARM under qemu: tools/aarch64.py [LAYER...].

Needs Debian and its packages gcc-aarch64-linux-gnu, qemu-user-static and ninja-build. The libraries
for ARM are downloaded with a package state of their own and unpacked into build/aarch64-root: the
architectures of the host's dpkg do not change.
"""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ROOT = SOURCE / "build/aarch64-root"
BUILD = SOURCE / "build/aarch64-test"
LAYERS = ["base", "os", "buffer", "executor", "loop", "channel"]
PACKAGES = ["libc6-dev", "libcmocka-dev", "liburing-dev", "libssl-dev", "zlib1g-dev",
            "libbrotli-dev", "libzstd-dev"]


def run(*command):
    subprocess.run([str(word) for word in command], cwd=SOURCE, check=True)


def make_root():
    state = SOURCE / "build/aarch64-apt"
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    apt = ["apt-get", "-qq", "-y", "-o", f"Dir::State={state}", "-o", f"Dir::Cache={state}",
           "-o", f"Dir::State::status={state}/status", "-o", "APT::Architecture=arm64",
           "-o", "APT::Architectures=arm64"]
    run(*apt, "update")
    run(*apt, "--no-install-recommends", "--download-only", "install", *PACKAGES)
    unpacked = ROOT.with_suffix(".new")
    for package in sorted((state / "archives").glob("*.deb")):
        run("dpkg", "-x", package, unpacked)
    for path in unpacked.rglob("*"): # a linker does not look for absolute links in its root
        if path.is_symlink() and os.path.isabs(os.readlink(path)):
            target = unpacked / os.readlink(path).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))
    unpacked.rename(ROOT)


def main():
    layers = sys.argv[1:] or LAYERS
    if not ROOT.exists():
        make_root()
    run("cmake", "--preset", "aarch64-test")
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], check=True, text=True,
                            capture_output=True).stdout
    names = [line.split(":")[0] for line in listed.splitlines()]
    prefixes = tuple(f"tests/test_{layer.replace('/', '_')}_" for layer in layers)
    targets = [name for name in names if name.startswith(prefixes) and "." not in name]
    run("nice", "-n", "15", "ninja", "-C", BUILD, "-j", "2", *targets)
    pattern = f"^({'|'.join(layers)})/"
    return subprocess.run(["nice", "-n", "15", "ctest", "--test-dir", BUILD, "--parallel", "2",
                           "--output-on-failure", "--tests-regex", pattern,
                           "--exclude-regex", "^loop/idle$"]).returncode # it counts with strace


if __name__ == "__main__":
    sys.exit(main())
