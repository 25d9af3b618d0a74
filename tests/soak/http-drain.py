# SPDX-License-Identifier: Apache-2.0
"""./dev soak http-drain [ROUNDS] [SECONDS]: stops a server under the load of wrk, ROUNDS (20) times
on every backend; wrk runs for SECONDS (2) each time.
"""
import pathlib
import sys

HTTP = pathlib.Path(__file__).resolve().parent.parent / "protocol/http/peers"
sys.path.insert(0, str(HTTP))
sys.dont_write_bytecode = True

import drain  # noqa: E402

if __name__ == "__main__":
    server = pathlib.Path(sys.argv[1]) / "http-test-server"
    drain.main(server, *(sys.argv[2:] or ["20"]), *(["2"] if len(sys.argv) < 4 else []))
