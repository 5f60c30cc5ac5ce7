"""The package with the program that STACKLINE names (or that is installed). What an optional library is needed for is passed over,
with a word, where it is not there."""

import contextlib
import html.parser
import importlib.util
import io
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
ROOT = PACKAGE.parent
if os.environ.get("STACKLINE_INSTALLED") is None:
    sys.path.insert(0, str(PACKAGE))

import stackline  # noqa: E402
from stackline import _api, _events, _html, _plot, _program, _progress, _run, _session  # noqa: E402

# A call of 32 bytes takes 10.1 ms.
PAIR = "network n { host a, b; link a - b 10 Mbit/s 5 ms; }\n"
CALLS = PAIR + "2 from a to b rr 32*10 over tcp across n in simulated;"
SWEEP = PAIR + "2 from a to b rr N*10 over tcp, udp across n in simulated; N = 32, 320, 1000;"
# More than any test waits for.
ENDLESS = PAIR + "1000000 from a to b rr 32*1000 across n in simulated;"


def needs(*libraries):
    """Passes a test over, with a word, where a library is not there, unless none may be passed over."""
    lacking = [name for name in libraries if importlib.util.find_spec(name) is None]
    return unittest.skipIf(lacking and not os.environ.get("STACKLINE_REQUIRE"), f"passed over: {', '.join(lacking)} not installed")


class InPlace(unittest.TestCase):
    """Each test in a directory of its own, where its runs are kept."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name).resolve()
        before = os.getcwd()
        os.chdir(self.place)
        self.addCleanup(os.chdir, before)
        self.addCleanup(_session._close_all)

    def kept(self):
        runs = self.place / "stackline-runs"
        return sorted(path.name for path in runs.iterdir()) if runs.exists() else []

    def python(self, text, **environment):
        """What a Python program prints that has the package."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        done = subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": path, **environment},
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr


class Runs(InPlace):
    def test_a_run_is_kept_and_opened_again(self):
        run = stackline.run(CALLS, name="first")
        self.assertEqual(self.kept(), [run.name])
        self.assertTrue(run.is_complete and run.world == "simulated" and run.seed == 1)
        row = run.results[0]
        self.assertAlmostEqual(row.response_s.median, 0.0101, places=3)
        self.assertEqual(row["response_s"]["median"], row.response_s.median)
        for name in ("last", "first", run.name, run.path):
            again = stackline.open_run(name)
            self.assertEqual(again.path, run.path)
            self.assertEqual(again.json["measurements"], run.json["measurements"])
        self.assertEqual(stackline.runs()[0].name, run.name)
        self.assertEqual(stackline.runs("first")[0].state, "complete")
        self.assertEqual(len(stackline.runs("second")), 0)
        self.assertEqual(run.specification(), CALLS)

    def test_what_is_not_kept_writes_nothing(self):
        run = stackline.run(CALLS, keep=False, percentiles=[75, "99.9", "max"])
        self.assertEqual(self.kept(), [])
        self.assertIsNone(run.path)
        self.assertEqual(set(run.results[0].response_s.percentiles), {"p75", "p99.9", "max"})
        for ask in (run.events, run.lifelines, run.findings, run.records, run.specification):
            with self.assertRaisesRegex(stackline.InputError, "was not kept\nhint: "):
                ask()
        with self.assertRaises(stackline.InputError):
            stackline.compare(run)

    def test_a_file_a_path_and_a_builder_are_specifications(self):
        (self.place / "calls.stackline").write_text(CALLS)
        expected = stackline.simulate(CALLS).json["measurements"]
        for spec in ("calls.stackline", pathlib.Path("calls.stackline")):
            self.assertEqual(stackline.simulate(spec).json["measurements"], expected)
        spec = stackline.Specification()
        spec.network("n").hosts("a", "b").link("a", "b", "10 Mbit/s", "5 ms")
        spec.measure(stackline.request_response(32, count=10), runs=2, between=("a", "b"), over="tcp", across="n")
        made = stackline.simulate(spec)
        self.assertEqual(made.results[0].response_s.mean, expected[0]["response_s"]["mean"])

    def test_variables_over_and_seed_replace_what_the_text_says(self):
        run = stackline.simulate(SWEEP, variables={"N": [64, "1 KiB"]}, over=["udp"])
        self.assertEqual(run.results.values("N"), [64, 1024])
        self.assertEqual({row.stack for row in run.results}, {"udp"})
        self.assertEqual(stackline.simulate(CALLS, seed=7).seed, 7)
        with self.assertRaises(stackline.InputError):
            stackline.simulate(SWEEP, variables={"N": "1; 1 rr 5*5"})

    def test_live_runs_measure_this_machine(self):
        run = stackline.run("2 request_response 32*50 over tcp, unix")
        self.assertEqual([row.stack for row in run.results], ["tcp", "unix"])
        self.assertTrue(all(row.response_s.min > 0 for row in run.results))
        comparison = stackline.compare(run)
        self.assertEqual(comparison.metrics[0].metric, "response")
        unkept = stackline.run("1 request_response 32*50 over unix", keep=False)
        self.assertEqual((unkept.world, len(self.kept())), ("live", 1))

    def test_a_traced_run_has_events_lifelines_findings_and_records(self):
        run = stackline.run(CALLS, trace=True)
        events = list(run.events())
        keywords = {event.keyword for event in events}
        self.assertIn("APP_CALL", keywords)
        self.assertEqual({event.host for event in events} & {"a", "b"}, {"a", "b"})
        self.assertTrue(all(type(event.at_ns) is int for event in events))
        first = next(iter(run.events()))
        self.assertEqual(first, events[0])
        lines = run.lifelines(lines=True)
        # 20 calls, and the connections of two runs.
        self.assertEqual((lines.units, len(lines.lines)), (22, 22))
        findings = run.findings()
        self.assertEqual([row.rank for row in findings], list(range(1, len(findings) + 1)))
        self.assertTrue(all(row.sentence for row in findings))
        self.assertEqual([path.name for path in run.records().files], ["results.parquet"])
        untraced = stackline.run(CALLS)
        with self.assertRaisesRegex(stackline.InputError, "has no events"):
            untraced.events().files

    def test_two_runs_are_compared(self):
        slow = stackline.run(CALLS, name="slow")
        fast = stackline.run(CALLS.replace("5 ms", "1 ms"), name="fast")
        for a, b in ((slow, fast), ("slow", "fast"), (slow.path, fast.path)):
            metric = stackline.compare(a, b).metrics[0]
            self.assertLess(metric.ratio, 0.5)
        text = repr(stackline.compare(slow, fast))
        self.assertIn("response x 0.", text)

    def test_predictions_stand_beside_what_was_measured(self):
        run = stackline.run(CALLS)
        row = stackline.predict(CALLS, forms=True, run=run)[0]
        self.assertEqual((row.metric, row.unit), ("response", "s"))
        self.assertAlmostEqual(row.predicted, 0.0101, places=3)
        self.assertAlmostEqual(row.ratio, 1.0, places=1)
        with self.assertRaisesRegex(stackline.InputError, "no network"):
            stackline.predict("1 rr 32*5")

    def test_a_check_is_true_or_says_where(self):
        right = stackline.check(SWEEP)
        self.assertTrue(right)
        self.assertEqual((right.measurements, right.runs), (6, 12))
        wrong = stackline.check("seed 1;\n1 rr 32*5 over tcpp")
        self.assertFalse(wrong)
        self.assertEqual((wrong.diagnostics[0].line, wrong.measurements), (2, 0))
        self.assertIn("over tcp", wrong.right)
        with self.assertRaises(stackline.InputError) as caught:
            stackline.run("seed 1;\n1 rr 32*5 over tcpp")
        error = caught.exception
        self.assertIn("line 2", error.message)
        self.assertTrue(error.hint)
        self.assertEqual((error.exit_code, error.kind), (2, "input"))
        self.assertEqual(error.right, wrong.right)
        self.assertIsInstance(error, ValueError)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.diagnostics), (str(error), error.diagnostics))

    def test_the_session_has_the_version_of_the_package(self):
        self.assertEqual(stackline.session().version, stackline.__version__)
        manifest = ROOT / "Cargo.toml"
        if manifest.exists():
            self.assertIn(f'version = "{stackline.__version__}"', manifest.read_text())

    def test_a_study_comes_back_in_its_order(self):
        texts = [CALLS.replace("5 ms", f"{delay} ms") for delay in (8, 1, 4, 2)]
        made = stackline.simulate(texts)
        means = [run.results[0].response_s.mean for run in made]
        self.assertEqual(sorted(means), [means[1], means[3], means[2], means[0]])
        self.assertEqual(self.kept(), [])
        varied = stackline.simulate([SWEEP] * 2, variables=[{"N": 40}, {"N": 50}], seed=[3, 4])
        self.assertEqual([run.results[0].N for run in varied], [40, 50])
        self.assertEqual([run.seed for run in varied], [3, 4])
        self.assertEqual(stackline.simulate([]), [])
        with self.assertRaisesRegex(stackline.InputError, "2 values of `seed` for 1"):
            stackline.simulate([CALLS], seed=[1, 2])

    def test_a_wrong_text_of_a_study_raises_or_stands_in_its_place(self):
        texts = [CALLS, "1 rr 32*5 over tcpp", CALLS]
        with self.assertRaisesRegex(stackline.InputError, "tcpp"):
            stackline.simulate(texts)
        made = stackline.simulate(texts, errors="return")
        self.assertIsInstance(made[1], stackline.InputError)
        self.assertEqual(made[0].json["measurements"], made[2].json["measurements"])


class Interruptions(InPlace):
    def test_a_keyboard_interrupt_cancels_and_the_session_goes_on(self):
        def interrupt(_):
            os.kill(os.getpid(), signal.SIGINT)

        process = stackline.session()._process.pid
        for ask in (
            lambda: stackline.run(ENDLESS, progress=interrupt, keep=False),
            lambda: stackline.simulate(ENDLESS, progress=interrupt),
            lambda: stackline.simulate([CALLS] * 5 + [ENDLESS] * 5, progress=interrupt),
        ):
            with self.assertRaises(KeyboardInterrupt):
                ask()
            self.assertEqual(self.kept(), [])
            self.assertTrue(stackline.check(CALLS))
        self.assertEqual(stackline.session()._process.pid, process)

    def test_finished_runs_of_a_cancelled_one_are_kept(self):
        def stop(progress):
            if progress["done"] > 3:
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            stackline.run("100000 request_response 32*100 over unix", progress=stop)
        run = stackline.open_run("last")
        self.assertFalse(run.is_complete)
        self.assertGreater(run.results[0].runs, 3)
        self.assertIn("INCOMPLETE", run._repr_html_())

    def test_a_session_that_dies_is_said_and_started_again(self):
        server = stackline.session()

        def kill(_):
            os.kill(server._process.pid, signal.SIGKILL)

        with self.assertRaisesRegex(stackline.SessionEnded, "ended by signal 9 in the middle of a request"):
            stackline.simulate(ENDLESS, progress=kill)
        self.assertTrue(stackline.check(CALLS))
        self.assertNotEqual(stackline.session()._process.pid, server._process.pid)

    def test_a_session_that_died_in_between_is_started_again(self):
        server = stackline.session()
        os.kill(server._process.pid, signal.SIGKILL)
        server._process.wait()
        self.assertTrue(stackline.check(CALLS))

    def test_a_callback_cannot_ask_its_own_session(self):
        with self.assertRaisesRegex(RuntimeError, "callback"):
            stackline.simulate(ENDLESS, progress=lambda _: stackline.check(CALLS))
        self.assertTrue(stackline.check(CALLS))

    def test_a_closed_session_says_so(self):
        with stackline.Session() as own:
            self.assertTrue(own.request("check", {"specification": CALLS})["result"]["ok"])
        self.assertIsNotNone(own._process.returncode)
        with self.assertRaisesRegex(stackline.SessionEnded, "was closed"):
            own.request("check", {"specification": CALLS})

    def test_the_program_ends_with_python(self):
        text = "import stackline; print(stackline.session()._process.pid, flush=True)"
        out, _ = self.python(text)
        self.assertFalse(pathlib.Path(f"/proc/{int(out)}").exists())

    def test_threads_share_a_session(self):
        made = {}

        def ask(delay):
            run = stackline.simulate(CALLS.replace("5 ms", f"{delay} ms"))
            made[delay] = run.results[0].response_s.mean

        threads = [threading.Thread(target=ask, args=(delay,)) for delay in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(made), list(range(1, 9)))
        self.assertEqual(sorted(made.values()), [made[delay] for delay in range(1, 9)])

    def test_another_directory_has_another_session_and_a_request_under_way_is_left_alone(self):
        first = stackline.session()
        below = self.place / "below"
        below.mkdir()
        moved = []

        def move(progress):
            if not moved:
                moved.append(True)
                os.chdir(below)
                other = threading.Thread(target=lambda: stackline.run(CALLS))
                other.start()
                other.join()
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            stackline.simulate(ENDLESS, progress=move)
        self.assertTrue(first._is_closed)
        self.assertEqual(len(list((below / "stackline-runs").iterdir())), 1)

    def test_a_forked_process_has_a_session_of_its_own_and_holds_nothing_of_its_parent(self):
        parent = stackline.session()
        ready, release = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                mean = stackline.simulate(CALLS).results[0].response_s.mean
                own = stackline.session()
                code = 0 if own is not parent and 0.009 < mean < 0.012 else 2
                os.write(ready[1], b"x")
                os.read(release[0], 1)
            finally:
                _session._close_all()
                os._exit(code)
        self.assertEqual(os.read(ready[0], 1), b"x")
        self.assertTrue(stackline.check(CALLS))
        self.assertIs(stackline.session(), parent)
        # The child lives: the program ends with its parent nevertheless.
        parent._process.stdin.close()
        self.assertEqual(parent._process.wait(), 0)
        os.write(release[1], b"x")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for descriptor in (*ready, *release):
            os.close(descriptor)

    def test_progress_is_called_and_nothing_is_printed_in_a_pipe(self):
        seen = []

        def see(progress):
            seen.append(progress)
            if len(seen) == 3:
                raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            stackline.run(ENDLESS, keep=False, progress=see)
        self.assertEqual({one["total"] for one in seen}, {1000000})
        self.assertEqual(sorted(one["done"] for one in seen), [one["done"] for one in seen])
        _, err = self.python(f"import stackline; stackline.run({CALLS!r}, keep=False)")
        self.assertEqual(err, "")


class Programs(InPlace):
    """Which program is started, and what is said of one that does not fit."""

    def script(self, text):
        path = self.place / "stackline"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    @contextlib.contextmanager
    def named(self, path):
        before = os.environ.get("STACKLINE")
        os.environ["STACKLINE"] = path
        try:
            yield
        finally:
            if before is None:
                del os.environ["STACKLINE"]
            else:
                os.environ["STACKLINE"] = before

    def test_a_missing_program_is_said_with_where_it_was_looked_for(self):
        with self.named(str(self.place / "nothing")):
            with self.assertRaisesRegex(stackline.ProgramMissing, "STACKLINE names .*nothing, which is not a program\nhint: "):
                stackline.check(CALLS)
        text = "import stackline\ntry: stackline.check('')\nexcept stackline.ProgramMissing as error: print(error)"
        out, _ = self.python(text, STACKLINE="", PATH=str(self.place))
        self.assertTrue("was not found" in out or out == "", out)

    def test_the_program_beside_the_package_is_found_before_others(self):
        with self.named(""):
            places = _program._beside()
        self.assertIn(pathlib.Path(stackline.__file__).resolve().parent.parent / "bin" / "stackline", places)

    def test_programs_that_do_not_fit_are_named(self):
        for text, said in (
            ("echo unrecognized subcommand session >&2; exit 2", "has no `session`.*\n  unrecognized subcommand"),
            ("echo hello; cat", "is not the program `stackline`: it answers b'hello"),
            ("""echo '{"stackline": "9.0.0", "session": 7}'; cat""", "is stackline 9.0.0, whose session has version 7"),
        ):
            with self.named(self.script(text)), self.assertRaisesRegex(stackline.ProgramMissing, said):
                stackline.check(CALLS)
        text = f"""echo '{{"stackline": "9.0.0", "session": {_session._PROTOCOL}}}'; cat >/dev/null"""
        with self.named(self.script(text)), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stackline.session().close()
        self.assertRegex(str(caught[0].message), f"is stackline 9.0.0, this package is {stackline.__version__}")

    def test_importing_loads_nothing_large(self):
        large = ("pandas", "numpy", "polars", "pyarrow", "matplotlib", "asyncio", "http", "email", "unittest", "IPython")
        out, _ = self.python(f"import sys, stackline; print([name for name in {large!r} if name in sys.modules])")
        self.assertEqual(out.strip(), "[]")


def fake_run(**changes):
    """A run as a hostile directory might have it."""
    figure = {"n": 2, "mean": 0.5, "sd": 0.1, "min": 0.1, "max": 1.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "p999": 1.0, "ci95": [0.4, 0.6]}
    row = {
        "measurement": 0, "text": "<script>alert(1)</script>", "part": "all", "application": "rr", "stack": 'a"&b', "world": "live",
        "variables": {"<N>": 1.0}, "runs": 2, "main": "response", "response_s": figure, "throughput_bit_s": None, "flags": ["<b>"], **changes,
    }
    whole = {"stackline": "0", "run": None, "seed": 1, "world": "live", "complete": True, "reason": None, "measurements": [row]}
    return _run.Run(whole, ".", "stackline", ["<i>note</i>"])


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)


class Rows(unittest.TestCase):
    def test_html_has_no_markup_of_the_run(self):
        run = fake_run()
        for text in (run._repr_html_(), run.results._repr_html_()):
            tags = Tags()
            tags.feed(text)
            self.assertLessEqual(tags.tags, {"table", "thead", "tbody", "tr", "th", "td", "caption", "br"})
            self.assertIn("&lt;script&gt;", text)
        many = _html.table(["a"], [["x"]] * 150)
        self.assertIn("and 50 more rows", many)
        self.assertEqual(many.count("<td>"), 100)

    def test_attributes_columns_and_units(self):
        row = fake_run(variables={"N": 64.0}).results[0]
        self.assertEqual((row.N, row.variables.N, row.value("response_s.p99")), (64.0, 64.0, 0.99))
        self.assertIsNone(row.value("throughput_bit_s.mean"))
        with self.assertRaisesRegex(AttributeError, "no field `respons_s`; did you mean `response_s`"):
            row.respons_s
        with self.assertRaises(AttributeError):
            row.runs = 3
        self.assertIn("response_s", dir(row))
        self.assertEqual(pickle.loads(pickle.dumps(row)), row)
        columns = fake_run(variables={"N": 64.0}).results.columns()
        self.assertEqual((columns["N"], columns["response_s_p99"], columns["response_s_ci95_low"]), ([64.0], [0.99], [0.4]))
        self.assertEqual(columns["flags"], ["<b>"])
        for name, expected in (
            ("response_s.p99", "s"), ("response_s_ci95_high", "s"), ("throughput_bit_s_mean", "bit/s"), ("rate_per_s", "1/s"),
            ("unit_bytes", "B"), ("cpu_us_per_call_both", "us/call"), ("at_ns", "ns"), ("response_s_n", None), ("runs", None), ("lost_share", "1"),
        ):
            self.assertEqual(stackline.unit(name), expected, name)

    def test_rows_are_a_sequence(self):
        rows = stackline.Rows([{"a": 1}, {"a": 2, "b": None}, {"a": 3}])
        self.assertEqual((len(rows), rows[-1].a, len(rows[:2]), rows.values("a")), (3, 3, 2, [1, 2, 3]))
        self.assertEqual(len(rows.where(a=2)), 1)
        self.assertEqual(rows.columns(), {"a": [1, 2, 3], "b": [None] * 3})
        self.assertEqual(repr(stackline.Rows([])), "Rows of 0")

    def test_an_event_is_read_as_it_was_written(self):
        for line, expected in (
            ("A; h; 1; 5\n", ("A", "h", 1_000_000_005, ())),
            ("A; h; 0; 7; 12; ; -3; a%3B b; 95%; %20x%25; 9223372036854775807;", ("A", "h", 7, (12, None, -3, "a; b", "95%", " x%", 2**63 - 1))),
            ("A; h; 0; 7; ; ;", ("A", "h", 7, (None, None))),
        ):
            self.assertEqual(tuple(_events.parsed(line)), expected)

    def test_the_progress_line_fits_and_cannot_steer_a_terminal(self):
        progress = {"done": 35, "total": 100, "now": "rr\x1b[2J\n" + "x" * 100, "elapsed_s": 12.0}
        line = _progress.line(progress, 79)
        self.assertTrue(line.startswith(" 35%|#######             | 35/100 [00:12<00:22] rr?[2J?"), line)
        self.assertEqual(len(line), 79)
        self.assertEqual(_progress.line({"done": 0, "total": 0, "now": None, "elapsed_s": 3700}, 79).strip(), "0%|                    | 0/1 [1:01:40]")
        out = io.StringIO()
        drawn = _progress.ProgressLine(out)
        drawn._begun -= 10
        drawn(progress)
        drawn.close()
        self.assertTrue(out.getvalue().endswith(" \r"))
        self.assertEqual(_progress.shown(False)[0], None)

    def test_axes_are_logarithmic_where_values_grow_by_factors(self):
        self.assertTrue(_plot.is_geometric([1, 8, 64, 512]))
        for values in ([1, 2, 3], [0, 10, 1000], range(1, 101), [5], []):
            self.assertFalse(_plot.is_geometric(list(values)), values)

    def test_only_a_name_of_a_specification_is_a_file(self):
        self.assertIn("file", _api._text("wan.stackline"))
        self.assertIn("specification", _api._text("1 rr 32*5"))


class Builder(InPlace):
    def test_what_is_built_is_right_and_the_text_is_that_of_a_person(self):
        n = stackline.Variable("N", [1, 8, 64])
        q = stackline.Variable("Q", "16 KiB, 32 KiB ... 64 KiB")
        spec = stackline.Specification(seed=42)
        wan = spec.network("wan").hosts("a", "b").switches("x")
        wan.link("a", "x", "100 Mbit/s", "1 ms").link("x", "b", "10 Mbit/s", "5 ms", loss="0.1%", queue=q)
        spec.measure(
            stackline.request_response(n, count=100), runs=3, between=("a", "b"), across=wan,
            over=["tcp", stackline.stack("tcp", nodelay=True, receive_buffer="64 KiB", sack=False)],
        )
        spec.measure(
            stackline.request_response(32, count=100, arrival="exponential(10 ms)"), stackline.bulk_put("16 KiB", amount="1 MB"),
            composer="background", between=("a", "b"), across=wan, warmup=1, time_limit="50 s",
        )
        for delay in (1, 2.5):
            spec.measure(stackline.stream(1250, count=10, interval=f"{delay} ms"), between=("a", "b"), across=wan, over="udp")
        text = str(spec)
        self.assertIn("3 from a to b request_response <N>*100 over tcp, tcp(nodelay, receive_buffer = 64 KiB) across wan;", text)
        self.assertIn(" N = 1, 8, 64;", text)
        check = stackline.check(spec)
        self.assertTrue(check, check)
        # The network's queue is a variable, which every measurement across it sweeps.
        self.assertEqual(check.measurements, 3 * 3 * 2 + 3 + 2 * 3)
        live = stackline.Specification()
        live.host("khons", "ssh", "user@10.0.0.5", at="10.0.0.5").host("udjat")
        live.measure(stackline.connect_disconnect(10), between=("khons", "udjat"), pairs=2, until="5%")
        live.measure(stackline.bulk_get("64 KiB"), to="http://127.0.0.1:8080/big", time_limit=2)
        self.assertTrue(stackline.check(live), stackline.check(live))

    def test_no_value_ends_its_statement(self):
        spec = stackline.Specification()
        for wrong in (
            lambda: stackline.request_response("1; 1 rr 5*5"),
            lambda: stackline.bulk_get("1 | rr 5"),
            lambda: stackline.bulk_get(True),
            lambda: stackline.bulk_get(""),
            lambda: stackline.stack("tcp(x)"),
            lambda: stackline.stack("tcp", receive_buffer="1 # 2"),
            lambda: stackline.Variable("N", []),
            lambda: stackline.Variable("a b", [1]),
            lambda: spec.network("n {"),
            lambda: spec.host("h", "ssh", 'a"b'),
            lambda: spec.measure(),
            lambda: spec.measure("rr 5*5", "rr 5*5"),
            lambda: spec.measure("rr 5*5; 1 rr 5*5"),
            lambda: spec.measure("rr 5*5", composer="beside"),
            lambda: spec.measure("rr 5*5", to='a"\n'),
        ):
            with self.assertRaises(stackline.InputError):
                wrong()
        n, other = stackline.Variable("N", [1]), stackline.Variable("N", [2])
        with self.assertRaisesRegex(stackline.InputError, "two lists"):
            spec.measure(stackline.request_response(n, other))
        self.assertEqual(str(stackline.bulk_get(0.000001)), "bulk_get 0.000001")


class Libraries(InPlace):
    """What optional libraries make of results."""

    def run_of_sweep(self):
        return stackline.run(SWEEP, trace=True)

    @needs("pandas", "pyarrow")
    def test_pandas(self):
        run = self.run_of_sweep()
        frame = run.frame()
        self.assertEqual(list(frame["N"]), run.results.values("N"))
        self.assertEqual(list(frame["response_s_p99"]), run.results.values("response_s.p99"))
        self.assertEqual(frame.attrs["units"]["response_s_p99"], "s")
        events = run.events().frame()
        self.assertEqual(len(events), sum(1 for _ in run.events()))
        self.assertEqual((len(run.records()), [row["calls"] for row in run.records()]), (12, 12 * [10]))
        self.assertIn("results.parquet", repr(run.records()))
        records = run.records().frame(["measurement", "calls"])
        self.assertEqual((len(records), records["calls"].sum()), (12, 120))

    @needs("pyarrow")
    def test_arrow(self):
        run = self.run_of_sweep()
        table = run.arrow()
        self.assertEqual(table.column("N").to_pylist(), run.results.values("N"))
        self.assertEqual(table.schema.field("response_s_p99").metadata, {b"unit": b"s"})
        events = run.events()
        arrow = events.arrow(["at_ns", "keyword", "host", "n1"])
        iterated = sorted((event.host, event.at_ns, event.keyword) for event in events)
        columns = [arrow.column(name).to_pylist() for name in ("host", "at_ns", "keyword")]
        self.assertEqual(sorted(zip(*columns)), iterated)

    @needs("polars")
    def test_polars(self):
        run = self.run_of_sweep()
        frame = run.polars()
        self.assertEqual(frame["N"].to_list(), run.results.values("N"))
        self.assertEqual(run.events().polars().height, sum(1 for _ in run.events()))

    @needs("matplotlib")
    def test_matplotlib(self):
        import matplotlib

        matplotlib.use("Agg")
        run = self.run_of_sweep()
        axes = run.plot("N", "response_s")
        self.assertEqual([line.get_label() for line in axes.get_lines()], ["tcp", "udp"])
        self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), ("N", "response_s [s]"))
        self.assertEqual(len(axes.collections), 2)
        self.assertEqual(list(axes.get_lines()[0].get_xdata()), [32, 320, 1000])
        self.assertIs(run.plot("N", "response_s.p99", by=None, ax=axes), axes)
        with self.assertRaisesRegex(stackline.InputError, "nothing to draw"):
            run.plot("N", "throughput_bit_s.mean")

    def test_a_library_that_is_not_there_is_named_with_how_to_get_it(self):
        text = (
            "import sys\n"
            "for name in ('pandas', 'polars', 'pyarrow', 'matplotlib', 'matplotlib.pyplot'): sys.modules[name] = None\n"
            "import stackline\n"
            "rows = stackline.Rows([{'a': 1}])\n"
            "from stackline import _plot\n"
            "asks = (rows.frame, rows.polars, rows.arrow, lambda: _plot.plot(rows, 'a', 'a', by=None, ax=None))\n"
            "for ask in asks:\n"
            "    try: ask()\n"
            "    except stackline.MissingLibrary as error: print(error.message, '|', error.hint)\n"
        )
        out, _ = self.python(text)
        lines = out.splitlines()
        self.assertEqual([line.split()[2].rstrip(",") for line in lines], ["pandas", "polars", "pyarrow", "matplotlib"])
        self.assertTrue(all("pip install" in line for line in lines))

    @needs("mypy")
    def test_types(self):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(self.place / "cache"), str(PACKAGE / "stackline")],
            capture_output=True, encoding="utf-8", check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    @needs("pip")
    def test_pip_installs_the_package_without_a_network(self):
        if not (PACKAGE / "build_backend.py").exists():
            self.skipTest("passed over: this is an installed package")
        target = self.place / "target"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore", "--target", str(target), str(PACKAGE)],
            check=True,
        )
        text = "import stackline, stackline_events, stackline_blockclient; print(stackline.__file__)"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, encoding="utf-8", check=True, env={**os.environ, "PYTHONPATH": str(target)})
        self.assertEqual(pathlib.Path(done.stdout.strip()).parent, target / "stackline")
        self.assertTrue((target / "stackline" / "py.typed").exists())


class Documents(InPlace):
    """The cells of the notebook and of the page are what these tests run."""

    def carried_out(self, cells):
        names = {"__name__": "__main__"}
        lacking = []
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for number, cell in enumerate(cells, 1):
                try:
                    exec(compile(cell, f"<cell {number}>", "exec"), names)
                except stackline.MissingLibrary as error:
                    lacking.append(error.message)
        if lacking:
            print(f"passed over: {len(lacking)} of {len(cells)} cells: {'; '.join(sorted(set(lacking)))}", file=sys.stderr)
        return out.getvalue()

    def with_a_screen_of_none(self):
        os.environ.setdefault("MPLBACKEND", "Agg")

    def test_the_notebook(self):
        path = ROOT / "examples" / "first.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(notebook["nbformat"], 4)
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 5)
        self.with_a_screen_of_none()
        self.assertIn("tcp", self.carried_out(cells))

    def test_the_page(self):
        text = (ROOT / "docs" / "howto" / "PYTHON.md").read_text(encoding="utf-8")
        cells = [part.split("```", 1)[0] for part in text.split("```python\n")[1:]]
        self.assertGreater(len(cells), 5)
        self.with_a_screen_of_none()
        self.assertIn("ms", self.carried_out(cells))


if __name__ == "__main__":
    unittest.main()
