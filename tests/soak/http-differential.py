# SPDX-License-Identifier: Apache-2.0
"""./dev soak http-differential [ROUNDS]: the HTTP/1.1 codec against Node's parser, nginx in front
of a server, and nginx behind a proxy, with 20,000 mutants; the parsers with ROUNDS seeds (default
10). The codec gets the mutants of the first one in any two parts.
"""
import pathlib
import sys

HTTP = pathlib.Path(__file__).resolve().parent.parent / "protocol/http/peers"
sys.path.insert(0, str(HTTP))
sys.dont_write_bytecode = True

import differential  # noqa: E402
import nginx_behind  # noqa: E402
import nginx_front  # noqa: E402

COUNT = 20000

if __name__ == "__main__":
    programs = pathlib.Path(sys.argv[1])
    for seed in range(1, int((sys.argv[2:] or [10])[0]) + 1):
        print(f"seed {seed}", flush=True)
        for kind in ("requests", "responses"):
            differential.main(programs / "http-parse", kind, COUNT, seed, 1 if seed == 1 else 29)
    nginx_front.main(programs / "http-test-server", COUNT, 10)
    nginx_behind.main(programs / "reverse-proxy", COUNT, 10)
