"""Keys that do nothing in a run."""

import pytest

from fedexp.report.read.idle import is_idle
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import provenance


@pytest.mark.parametrize(
    ("keys", "idle", "acting"),
    [
        ({"local.optimizer": "sgd"}, ["local.beta1", "local.eps"], ["local.momentum", "local.lr"]),
        ({"local.optimizer": "adam"}, ["local.momentum", "local.nesterov"], ["local.beta2"]),
        ({"scenario.malicious": 0}, ["attack.scale", "scenario.malicious_hold_data"], ["scenario.malicious"]),
        ({"scenario.malicious": 2}, [], ["attack.scale", "scenario.malicious_hold_data"]),
        ({"scenario.training": "local"}, ["aggregator.weighting", "server_optimizer.lr"], ["selector.count"]),
        ({"local.lr": "${scenario.local_lr}"}, ["scenario.byzantine"], ["scenario.local_lr", "scenario.participants"]),
        ({"local.lr": 0.3, "scenario.local_lr": 0.1}, ["scenario.local_lr"], ["local.lr"]),
        ({"evaluation.personal_fraction": 0.0}, ["evaluation.personal_clients"], ["evaluation.validation_fraction"]),
        ({"evaluation.personal_fraction": 0.2}, [], ["evaluation.personal_clients"]),
        ({"evaluation.validation_at": "clients"}, [], ["evaluation.personal_clients"]),
        ({"evaluation.personal_fraction": 0.0, "scenario.training": "local"}, [], ["evaluation.personal_clients"]),
    ],
)
def test_what_another_key_turns_off(keys, idle, acting, make_run, tmp_path):
    make_run("0", keys={"scenario.local_lr": 0.1, **keys})
    (run,) = collect_runs([tmp_path])[0]
    assert [key for key in (*idle, *acting) if is_idle(run, key)] == idle


def test_differences_leave_them_out_or_mark_them(make_run, tmp_path):
    for name, optimizer, beta, eps in (("0", "sgd", 0.5, 1.0), ("1", "adam", 0.6, 1.0), ("2", "sgd", 0.7, 2.0)):
        keys = {"local.optimizer": optimizer, "local.beta1": beta, "local.eps": eps, "attack.scale": beta}
        make_run(name, keys={**keys, "scenario.malicious": 0})
    grid = provenance.differences_table(group_runs(collect_runs([tmp_path])[0]))
    assert grid is not None

    assert list(grid.headings) == ["method", "local.beta1", "local.eps", "local.optimizer"]
    assert [row[1] for row in grid.rows] == ["0.5 (idle)", "0.6", "0.7 (idle)"]
    assert [row[2] for row in grid.rows] == ["1 (idle)", "1", "2 (idle)"]
