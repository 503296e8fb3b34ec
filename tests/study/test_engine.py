"""The engine: the same table whoever does the runs; killed, interrupted and resumed; workers that die."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study.examples import METHOD, PLAN, Line, line_study

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.study import MAX_CHUNK, ChunkPace, Pool, PreparedTask, RunAnswer

SCRIPT = """
import numpy as np, grisaille as gr

class Line(gr.Model):
    p, q = gr.Parameter(1.5), gr.Parameter(-0.4)
    x = gr.Input()
    y = gr.Output(p + q * x, noise=0.1)

plan = gr.Experiment(inputs={{"x": np.linspace(-1.0, 2.0, 12)}}, outputs={{"y": np.zeros(12)}})
gr.monte_carlo(Line(), plan, ["p", "q"], gr.OutputError(), runs=1_000_000, seed=3, store={store!r},
               executor=2)
"""


def same(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    pd.testing.assert_frame_equal(a, b, check_exact=True)
    return True


def finished(store: Path) -> int:
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            count = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
        connection.close()
        return int(count)
    except sqlite3.OperationalError:
        return 0


def children_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line) for line in found.split()]


def is_there(pid: int) -> bool:
    """Zombies that nobody has waited for do not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes through /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_study_that_was_stopped_goes_on_bit_for_bit(how: signal.Signals, tmp_path: Path) -> None:
    """From an unguarded script, with two worker processes."""
    store, script = tmp_path / "study.db", tmp_path / "unguarded.py"
    script.write_text(SCRIPT.format(store=str(store)))
    # a shell starts background jobs deaf to Ctrl-C, and their children inherit it
    hear = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True, preexec_fn=hear)
    try:
        assert wait_for(lambda: finished(store) >= 10 or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()
        workers = children_of(process.pid)
        process.send_signal(how)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
        process.communicate()
    assert process.returncode != 0
    assert wait_for(lambda: not any(map(is_there, workers)), 10.0), "workers outlived the study"
    if how == signal.SIGINT:
        assert "runs are in" in said and "the same call continues from there" in said
        assert said.count("Traceback") == 1
    done = finished(store)
    assert done >= 10
    resumed = line_study(done + 15, store=store)
    assert same(resumed.table, line_study(done + 15).table)
    assert finished(store) == done + 15
    assert (resumed.seconds > 0).all()


def test_finished_runs_are_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    original = PreparedTask.do

    def counted(self: PreparedTask, run: int) -> RunAnswer:
        done.append(run)
        return original(self, run)

    monkeypatch.setattr(PreparedTask, "do", counted)
    first = line_study(8, store=tmp_path / "s.db")
    second = line_study(12, store=tmp_path / "s.db")
    third = line_study(8, store=tmp_path / "s.db", executor=2)
    assert done == list(range(12))
    assert same(first.table, second.table.head(8)) and same(first.table, third.table)


def test_any_executor_gives_the_same_table() -> None:
    alone = line_study(24)
    with ThreadPoolExecutor(2) as threads:
        assert same(line_study(24, executor=threads).table, alone.table)
    assert same(line_study(24, executor=2).table, alone.table)


def test_workers_have_one_thread_and_the_parent_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    script = sys.modules["__main__"]
    with Pool(1) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
        assert pool.submit(os.getenv, "OPENBLAS_NUM_THREADS").result() == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert sys.modules["__main__"] is script


DEADLY = """
import os
from dataclasses import dataclass
from grisaille.estimators.output_error.output_error import OutputError

@dataclass(frozen=True)
class Deadly(OutputError):
    def estimate(self, problem, progress=None):
        if problem.guess[0] < -50:
            os._exit(9)
        return super().estimate(problem, progress)
"""


def test_a_run_that_kills_its_worker_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    from deadly import Deadly

    data = PLAN.replace(outputs={"y": 1.0 - 0.3 * np.linspace(-1.0, 2.0, 12)})
    points = [[0.0, 0.0], [-99.0, 0.0], [1.0, 1.0], [2.0, 0.0]]
    study = gr.multistart(Line(), data, ["p", "q"], Deadly(), sampling=points, executor=1)
    assert study.table["failure"].tolist() == ["", "worker", "", ""]
    assert study.table["converged"].tolist() == [True, False, True, True]
    assert "the worker process died" in study.table["status"][1]


def test_a_closed_executor_is_refused() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(EstimationError, match="takes no more runs"):
        line_study(3, executor=pool)


def test_progress_counts_failures(capsys: pytest.CaptureFixture[str]) -> None:
    line_study(5, progress=True)
    assert "0 failed, 0 not converged" in " ".join(capsys.readouterr().out.split())


def test_chunks_last_a_quarter_of_a_second() -> None:
    pace = ChunkPace()
    assert pace.chunk(1000, 2) == 1
    pace.learn([RunAnswer(0, 0, 0.01, {}), RunAnswer(1, 0, 0.015, {})])
    assert pace.chunk(1000, 2) == 20
    assert pace.chunk(6, 2) == 2
    pace.learn([RunAnswer(k, 0, 1e-6, {}) for k in range(10000)])
    assert pace.chunk(10**6, 2) == MAX_CHUNK


def test_the_engine_costs_less_than_two_milliseconds_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fits that answer at once leave drawing, posing, reporting and storing."""
    canned = gr.fit(Line(), line_study(1).data(0), ["p", "q"], METHOD).estimate
    monkeypatch.setattr(gr.OutputError, "estimate", lambda self, problem, progress=None: canned)
    line_study(10)
    begin = time.process_time()
    line_study(200, store=tmp_path / "s.db")
    assert (time.process_time() - begin) / 200 < 2e-3


@pytest.mark.slow
def test_dask_cluster_loses_a_worker(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        ThreadPoolExecutor(1) as side,
    ):
        pids = list(client.run(os.getpid).values())
        study = side.submit(line_study, 500, executor=client.get_executor(), store=tmp_path / "s.db")
        assert wait_for(lambda: finished(tmp_path / "s.db") >= 5)
        os.kill(pids[0], signal.SIGKILL)
        assert finished(tmp_path / "s.db") < 500, "the study was over before a worker was lost"
        assert same(study.result(120).table, line_study(500).table)
