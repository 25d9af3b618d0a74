# SPDX-License-Identifier: Apache-2.0
"""Tests of the results of all suites."""
import unittest

from harness import results


def made_of(command, *suites):
    return {
        "command": command,
        "rounds": 5,
        "seconds": 10,
        "failures": [],
        "machine": {},
        "versions": {"nginx": "1"},
        "suites": [{"name": name, "title": command} for name in suites],
    }


class Replaced(unittest.TestCase):
    def test_one_suite_replaces_itself_and_its_command(self):
        old = made_of("./dev bench --quick; ./dev bench http --page", "echo", "http", "tls")
        new = made_of("./dev bench http --page --rounds 9", "http")
        both = results.replaced(old, new)
        self.assertEqual(both["command"], "./dev bench --quick; ./dev bench http --page --rounds 9")
        self.assertEqual([s["name"] for s in both["suites"]], ["echo", "http", "tls"])
        self.assertEqual(both["suites"][1]["title"], new["command"])
        self.assertEqual(both["seconds"], 20)

    def test_failures_of_a_suite_end_with_its_next_run(self):
        old = made_of("./dev bench --quick", "echo", "http")
        old["failures"] = ["http: http_raw failed in 'file'", "echo: echo_netty failed in 'echo'"]
        both = results.replaced(old, made_of("./dev bench http --page", "http"))
        self.assertEqual(both["failures"], ["echo: echo_netty failed in 'echo'"])


if __name__ == "__main__":
    unittest.main()
