# SPDX-License-Identifier: Apache-2.0
"""./dev soak http-differential [ROUNDS]: the HTTP/1.1 codec against Node's parser, and nginx in
front of a server, with 20,000 mutants, in ROUNDS of other seeds (default 10).
"""
import pathlib
import sys

HTTP = pathlib.Path(__file__).resolve().parent.parent / "protocol/http/peers"
sys.path.insert(0, str(HTTP))
sys.dont_write_bytecode = True

import differential  # noqa: E402
import nginx_front  # noqa: E402

COUNT = 20000

if __name__ == "__main__":
    programs = pathlib.Path(sys.argv[1])
    for seed in range(1, int((sys.argv[2:] or [10])[0]) + 1):
        print(f"seed {seed}", flush=True)
        for kind in ("requests", "responses"):
            differential.main(programs / "http-parse", kind, COUNT, seed)
    nginx_front.main(programs / "http-test-server", COUNT, 10)
