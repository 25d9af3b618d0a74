# SPDX-License-Identifier: Apache-2.0
"""Tests of the page: python3 -m unittest discover -s bench -t bench."""
import copy
import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

from harness import page, report, results, rounds, suite as suites, svg


def setUpModule():
    results.versions = lambda: {"libuv": "1.44.2"}  # asking for them takes time


def run_of(costs, case=None, **fields):
    """A run of one suite with one case, with the best cost of each competitor."""
    competitors = [suites.Competitor(n, "program", ours=n in ("epoll", "uring")) for n in costs]
    case = case or suites.Case("echo-64", "64 connections, 64 B", "echo connections=64", **fields)
    suite = suites.Suite("echo", "echo", "ns", "raw epoll", competitors, [case])
    answers = {(case.run, name): [{"ns": cost}, {"ns": cost * 1.1}] for name, cost in costs.items()}
    cases = report.figures(suite, answers)
    about = report.machine("gcc 12")
    return page.Run(results.collect([(suite, cases)], about, 2, 61, "./dev bench", []))


class Sentences(unittest.TestCase):
    def test_names_a_peer_that_is_ahead(self):
        run = run_of({"raw epoll": 1000, "libuv": 970, "epoll": 1000, "uring": 900})
        lines = list(page.peers_ahead(run, "echo"))
        self.assertEqual(lines[-1], "- `echo-64`: libuv is 3 % ahead of weir epoll.")

    def test_reports_factors_of_two_as_times(self):
        run = run_of({"raw epoll": 1000, "epoll": 2500})
        self.assertIn("raw epoll is 2.5 times ahead of weir epoll", "".join(page.markdown(run)))

    def test_says_so_if_no_peer_is_ahead(self):
        run = run_of({"raw epoll": 1000, "epoll": 999})
        sentence = "No peer is ahead of weir in `echo`."
        self.assertEqual(list(page.peers_ahead(run, "echo")), [sentence])

    def test_shows_missed_targets(self):
        must = {"epoll": {"raw epoll": 0.97}, "uring": {"raw epoll": 1.04}}
        run = run_of({"raw epoll": 1000, "epoll": 1000, "uring": 1000}, must=must)
        rows = list(page.table(run, "echo"))
        self.assertTrue(rows[2].endswith("| 1.00x | met |"), rows[2])
        self.assertTrue(rows[3].endswith("| 1.00x | missed: 1.04x raw epoll |"), rows[3])

    def test_shows_targets_in_the_unit_of_the_case(self):
        run = run_of({"raw epoll": 10, "epoll": 40}, must={"best": 30})
        self.assertTrue(list(page.table(run, "echo"))[2].endswith("| missed: at most 30.0 ns |"))
        run = run_of({"raw epoll": 10, "epoll": 20}, must={"best": 30}, aim={"best": 20})
        self.assertTrue(list(page.table(run, "echo"))[2].endswith("| aim met |"))

    def test_counts_and_lists_missed_targets(self):
        must = {"epoll": {"raw epoll": 0.97}, "uring": {"raw epoll": 1.04}}
        run = run_of({"raw epoll": 1000, "epoll": 1000, "uring": 1000}, must=must)
        lines = list(page.misses(run))
        self.assertEqual(lines[0], "1 of 2 targets are met, and 0 of 0 aims.")
        self.assertEqual(lines[2:], ["- `echo/echo-64`, weir io_uring: missed: 1.04x raw epoll."])

    def test_does_not_divide_by_next_to_nothing(self):
        run = run_of({"raw epoll": 0, "epoll": 500})
        self.assertIn("more than 100 times ahead of weir epoll", page.markdown(run))

    def test_admits_that_a_peer_failed(self):
        run = run_of({"raw epoll": 1000, "epoll": 999})
        run.content["failures"] = ["echo: echo_netty failed in 'echo'"]
        self.assertIn("**Incomplete**: echo: echo_netty failed in 'echo'.", page.markdown(run))

    def test_admits_a_busy_machine(self):
        run = run_of({"raw epoll": 1000, "epoll": 999})
        run.content["machine"]["load"] = 7.0
        self.assertIn("not quiet", page.markdown(run))
        run.content["machine"]["load"] = 0.1
        self.assertNotIn("not quiet", page.markdown(run))


class Charts(unittest.TestCase):
    def test_are_left_out_without_their_suite(self):
        run = run_of({"raw epoll": 1000, "epoll": 999})
        self.assertIsNone(page.tls_chart(run))
        self.assertNotIn("tls.svg", page.markdown(run))

    def test_have_a_bar_for_each_competitor(self):
        drawn = page.echo_chart(run_of({"raw epoll": 1000, "libuv": 970, "uring": 900}))
        texts = [e.text for e in xml.etree.ElementTree.fromstring(drawn).iter() if e.text]
        for word in ("raw epoll", "libuv", "weir io_uring", "1.11x", "1.03x", "1.00x"):
            self.assertIn(word, texts)

    def test_keep_labels_apart(self):
        placed = svg.spread_out([10, 11, 12, 199], 0, 200)
        ordered = sorted(placed)
        gaps = [below - above for above, below in zip(ordered, ordered[1:])]
        self.assertGreaterEqual(min(gaps), svg.LABEL_STEP)
        self.assertLessEqual(max(placed), 200)

    def test_draw_lines_over_a_logarithmic_axis(self):
        panel = {
            "title": "a & b",
            "series": {"weir": [(1, 5), (1000, 7)], "libuv": [(1, 50), (1000, 700)]},
            "x_ticks": [(1, "1"), (1000, "1k")],
            "x_title": "timers",
            "format": page.ns,
            "log": True,
        }
        drawn = xml.etree.ElementTree.fromstring(svg.lines("t", "s", [panel]))
        self.assertEqual(len(drawn.findall("{*}polyline")), 2)


class Rounds(unittest.TestCase):
    def test_without_an_answered_request_are_left_out(self):
        case = suites.Case("echo-64", "64 connections", "echo")
        competitors = [suites.Competitor("raw", "p"), suites.Competitor("weir", "p", ours=True)]
        suite = suites.Suite("echo", "echo", "ns", "raw", competitors, [case])
        answers = {("echo", "raw"): [{"share": 1}, {"ns": 5}], ("echo", "weir"): [{"share": 1}]}
        (found,) = report.figures(suite, answers)
        self.assertEqual(found["results"]["raw"]["rounds"], [5])
        self.assertNotIn("weir", found["results"])


class Files(unittest.TestCase):
    def test_survive_saving_and_loading(self):
        content = run_of({"raw epoll": 1000, "epoll": 999}).content
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.json"
            results.save(path, copy.deepcopy(content))
            self.assertEqual(results.load(path), json.loads(json.dumps(content)))

    def test_versions_are_those_of_upstream(self):
        self.assertEqual(results.upstream("1:4.1.48-7+deb12u1"), "4.1.48")
        self.assertEqual(results.upstream("2.0.9+ds-2"), "2.0.9")
        self.assertEqual(results.upstream(""), "")


class Suites(unittest.TestCase):
    def test_all_load_and_are_on_the_page(self):
        on_page = {name for _, _, _, names in page.SECTIONS for name in names}
        self.assertEqual(on_page, set(suites.names()))
        for name in suites.names():
            self.assertGreater(rounds.expected_of(suites.load(name), 1), 0)


if __name__ == "__main__":
    unittest.main()
