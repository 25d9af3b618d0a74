# SPDX-License-Identifier: Apache-2.0
"""npm_packages.py: downloads the packages of tests/npm/package-lock.json into
build/npm/node_modules, unless they are there. `npm ci` does the same, but Debian's npm brings some
hundred packages with it. Exits with 1 if one cannot be downloaded or has another checksum.

Tests find them by NODE_PATH, set by cmake/tests.cmake and by dev.
"""
import base64
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

from source import ROOT

LOCK = ROOT / "tests/npm/package-lock.json"
MODULES = ROOT / "build/npm/node_modules"
STAMP = ".integrity"  # in a package's folder: the checksum that it was installed with
ATTEMPTS = 3
TIMEOUT_S = 30


def url_of(name, package):
    registry = os.environ.get("npm_config_registry", "https://registry.npmjs.org").rstrip("/")
    file = name.rpartition("/")[2]
    return f"{registry}/{name}/-/{file}-{package['version']}.tgz"


def download(url):
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            sys.exit(f"npm_packages: {url}: {error}")
        except OSError as error:
            if attempt + 1 == ATTEMPTS:
                sys.exit(f"npm_packages: {url}: {error}; is the registry reachable from here?")
            time.sleep(attempt + 1)


def verify(url, archive, integrity):
    algorithm, _, expected = integrity.partition("-")
    found = base64.b64encode(hashlib.new(algorithm, archive).digest()).decode()
    if found != expected:
        sys.exit(f"npm_packages: {url}: {algorithm} is {found}, expected {expected}")


def unpack(archive, folder, integrity):
    """Replaces the folder at once: it is whole or not there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as path:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            # Trusted: its checksum was verified. Python 3.13 wants a filter, 3.11.2 has none.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(path)
        (top,) = os.listdir(path)  # "package", by custom
        with open(os.path.join(path, top, STAMP), "w") as stamp:
            stamp.write(integrity)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(os.path.join(path, top), folder)


def is_installed(folder, integrity):
    stamp = folder / STAMP
    return stamp.exists() and stamp.read_text() == integrity


def main():
    for path, package in json.loads(LOCK.read_text())["packages"].items():
        name = path.removeprefix("node_modules/")
        folder = MODULES / name
        if not name or is_installed(folder, package["integrity"]):
            continue
        url = url_of(name, package)
        archive = download(url)
        verify(url, archive, package["integrity"])
        unpack(archive, folder, package["integrity"])
        print(f"installed {name} {package['version']}")


if __name__ == "__main__":
    main()
