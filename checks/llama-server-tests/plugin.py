"""Plugin of pytest: nothing is downloaded, servers are waited for as long as a small machine needs, and results are counted by file."""
import collections
import os

FAST_START = 20


def pytest_configure(config):
    import utils

    utils.ServerPreset.load_all = staticmethod(lambda: None)
    start = utils.ServerProcess.start
    utils.ServerProcess.start = lambda self, timeout_seconds=FAST_START: start(self, FAST_START)
    if os.environ.get("ROCMFORGE_ANY_TEXT"):
        utils.match_regex = lambda regex, text: isinstance(text, str) and len(text) > 0


counts = collections.defaultdict(collections.Counter)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        counts[report.nodeid.split("::")[0].removeprefix("unit/")][report.outcome] += 1


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line("| file | passed | failed | skipped |\n|---|---|---|---|")
    for name, outcomes in sorted(counts.items()):
        terminalreporter.write_line(f"| {name} | {outcomes['passed']} | {outcomes['failed']} | {outcomes['skipped']} |")
    terminalreporter.write_line("| all | " + " | ".join(str(sum(c[o] for c in counts.values())) for o in ("passed", "failed", "skipped")) + " |")
