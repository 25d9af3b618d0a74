# SPDX-License-Identifier: Apache-2.0
"""./dev soak http-attacks [NAME...]: the attacks of tests/protocol/http/peers/attacks.py with the
numbers of a real attack.
"""
import pathlib
import sys

HTTP = pathlib.Path(__file__).resolve().parent.parent / "protocol/http/peers"
sys.path.insert(0, str(HTTP))
sys.dont_write_bytecode = True

import attacks  # noqa: E402

if __name__ == "__main__":
    attacks.main(pathlib.Path(sys.argv[1]) / "http-test-server", "--full", *sys.argv[2:])
