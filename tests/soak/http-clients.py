# SPDX-License-Identifier: Apache-2.0
"""./dev soak http-clients [MIB]: curl with MIB (default 200) up and down on every backend, and the
other clients, wrk for ten seconds.
"""
import pathlib
import sys

HTTP = pathlib.Path(__file__).resolve().parent.parent / "protocol/http/peers"
sys.path.insert(0, str(HTTP))
sys.dont_write_bytecode = True

import clients  # noqa: E402
import curl  # noqa: E402

if __name__ == "__main__":
    server = pathlib.Path(sys.argv[1]) / "http-test-server"
    curl.main(server, (sys.argv[2:] or [200])[0])
    for client in ("python", "node", "wrk"):
        clients.main(server, client, "10")
