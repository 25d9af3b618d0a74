# SPDX-License-Identifier: Apache-2.0
"""./dev soak sim-planted [SEEDS]: the simulator finds each planted mistake within SEEDS (20,000)
seeds of a program; prints the seed.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "sim"))
sys.dont_write_bytecode = True

import planted  # noqa: E402

if __name__ == "__main__":
    build = pathlib.Path(sys.argv[1]).parent
    sys.exit(planted.main(str(build), *(sys.argv[2:] or ["20000"])))
