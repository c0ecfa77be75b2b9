"""Mistakes in parts of users: each is told in one line that names part and method, what must be and what came."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import own_parts
import pytest
import torch
from worlds import Tiny

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.values import Plan
from fedexp.process.exits import CommandExit, exit_on_error
from fedexp.run.run import run
from fedexp.simulation.build_world import build_world
from fedexp.simulation.checks.contract_checks import CHECKS
from fedexp.simulation.rounds import run_rounds
from fedexp.training.workers.pool import WorkerPool

PARTS = {
    "choose": ("selector", "Choosing"),
    "observe": ("selector", "Choosing"),
    "reduce": ("aggregator", "Reducing"),
    "combine": ("aggregator", "Combining"),
    "step": ("server_optimizer", "Stepping"),
    "tamper": ("attack", "Tampering"),
    "due": ("pacing", "Beginning"),
    "timeline": ("availability", "Coming"),
    "deliver": ("fleet", "Delivering"),
    "assign": ("clustering", "Assigning"),
    "regroup": ("clustering", "Assigning"),
    "judge": ("stop", "Judging"),
    "begin": ("local", "Stepped"),
    "update": ("local", "Stepped"),
    "finish": ("local", "Stepped"),
    "facts": ("dataset", "Made"),
    "load": ("dataset", "Made"),
}


@pytest.fixture(autouse=True)
def _right_again() -> Iterator[None]:
    yield
    own_parts.MISTAKE.clear()


def config_of(tiny: Tiny, method: str) -> dict[str, Any]:
    role, name = PARTS[method]
    if role == "dataset":
        config = tiny()
        return {**config, "dataset": {"_target_": f"own_parts.{name}"}}
    clock = ["fleet=simulated"] if role == "availability" else []
    config = tiny("dataset.train_size=60", "dataset.test_size=20", "model.hidden=[]", *clock)
    kept = {key: config["local"][key] for key in ("epochs", "batch_size", "lr")} if role == "local" else {}
    return {**config, role: {"_target_": f"own_parts.{name}", **kept}}


def two_rounds(config: dict[str, Any]) -> int:
    exp = spec.build(config)
    world = build_world(exp, None, WorkerPool())
    return len(list(run_rounds(exp, world, world.initial_state())))


@pytest.mark.parametrize("method", PARTS)
def test_a_right_answer_is_taken(tiny: Tiny, method: str):
    assert two_rounds(config_of(tiny, method)) == 2


def test_a_timeline_is_a_function(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    def timeline(*_: Any) -> Any:
        return 3

    monkeypatch.setattr(own_parts.Coming, "timeline", timeline)
    with pytest.raises(ConfigError, match="timeline must return a function of clients and a time, got int 3"):
        two_rounds(config_of(tiny, "timeline"))


def chosen(owner: list[Any], dtype: Any = np.int64) -> Any:
    return lambda answer, ctx: (Plan(np.array(owner, dtype), (np.arange(4),) * len(owner)), answer[1])


def flat(change: Any) -> Any:
    return lambda answer, *_: (replace(answer[0], flat=change(answer[0].flat)), *answer[1:])


def rows(change: Any) -> Any:
    return lambda answer, *_: (answer[0].with_delta(change(answer[0].delta)), *answer[1:])


def layout(**changes: Any) -> Any:
    return lambda answer, *_: (replace(answer[0], layout=replace(answer[0].layout, **changes)), *answer[1:])


def column(**changes: Any) -> Any:
    return lambda answer, *_: (replace(answer[0], **changes), *answer[1:])


def arrivals(**changes: Any) -> Any:
    return lambda answer, ctx: (replace(answer[0], **changes), answer[1])


def split(change: Any) -> Any:
    return lambda data: replace(data, train=change(data.train))


NAN = float("nan")
MISTAKES = [
    ("choose", lambda answer, ctx: answer[0], r"must return \(Plan, dict\), got Plan"),
    ("choose", lambda answer, ctx: ([0, 1], {}), r"must return \(Plan, dict\), but the Plan is list"),
    ("choose", lambda answer, ctx: (answer[0], None), r"\(Plan, dict\), but the dict is NoneType"),
    ("choose", chosen([0, 1], float), r"whole numbers \[C\], got ndarray float64 \[2\]"),
    ("choose", chosen([0, 99]), "clients from 0 to 5, got client 99"),
    ("choose", chosen([-2]), "clients from 0 to 5, got client -2"),
    ("choose", chosen([3, 1, 3]), "each client once, got client 3 2 times"),
    ("choose", lambda answer, ctx: (replace(answer[0], shards=()), {}), "got 0 shards for 3 clients"),
    (
        "choose",
        lambda answer, ctx: (replace(answer[0], importance=-np.ones(3)), {}),
        "whose importance is a number >= 0",
    ),
    (
        "choose",
        lambda answer, ctx: (answer[0], {"seen": np.zeros(3)}),
        r"got ndarray float64 \[3\] as memory\['seen'\]",
    ),
    ("choose", lambda answer, ctx: (answer[0], {"seen": [{3}]}), r"got set as memory\['seen'\]"),
    (
        "choose",
        lambda answer, ctx: (answer[0], {"seen": {np.int64(3): 1}}),
        r"got int64 as a key of memory\['seen'\]",
    ),
    ("observe", lambda memory: None, "must return its memory, a dict, got NoneType"),
    (
        "reduce",
        lambda row, delta: delta,
        r"must return a row torch.float32 \[90\] of the rows \[3, 90\], got .* \[3, 90\]",
    ),
    ("reduce", lambda row, delta: row[:1], r"of the rows \[3, 90\], got torch.float32 \[1\]"),
    ("reduce", lambda row, delta: row.sum(), r"got torch.float32 \[\]"),
    ("reduce", lambda row, delta: row.double(), r"got torch.float64 \[90\]"),
    ("reduce", lambda row, delta: row.numpy(), "got ndarray"),
    ("reduce", lambda row, delta: row.to("meta"), r"got torch.float32 \[90\] on meta"),
    ("reduce", lambda row, delta: row.to_sparse(), r"got torch.float32 \[90\] \(not dense\)"),
    ("tamper", rows(torch.Tensor.to_sparse), r"delta is a dense tensor of real numbers, got .* \(not dense\)"),
    (
        "reduce",
        lambda row, delta: row * NAN,
        "combine must return finite numbers for 3 finite uploads, got 90 NaN and 0",
    ),
    ("combine", lambda answer, weights: answer[0], r"must return \(Weights, dict\), got Weights"),
    (
        "combine",
        flat(lambda row: row[:5]),
        r"whose flat \[D\] is as a tensor torch.float32 \[90\], got Tensor .* \[5\]",
    ),
    ("combine", flat(torch.Tensor.double), r"got Tensor torch.float64 \[90\]"),
    ("combine", flat(lambda row: row / 0), "must return finite numbers"),
    ("step", flat(lambda row: row * NAN), "must return finite numbers for a finite proposal, got 90 NaN"),
    ("step", lambda answer: None, r"must return \(Weights, dict\), got NoneType"),
    ("tamper", rows(lambda delta: delta[:, :7]), r"delta \[C, D\] is .* \[3, 90\], got Tensor torch.float32 \[3, 7\]"),
    ("tamper", rows(lambda delta: delta[:2]), r"\[3, 90\], got Tensor torch.float32 \[2, 90\]"),
    ("tamper", rows(torch.Tensor.long), "got Tensor torch.int64"),
    (
        "tamper",
        lambda answer, _: (replace(answer[0], examples=np.ones(1)), {}),
        "as many examples as owners, got 1 for 3",
    ),
    ("due", lambda answer, ctx: answer[0], r"must return \(Arrivals, dict\), got Arrivals"),
    ("due", arrivals(begun=np.zeros(3)), "the step in which each of 3 clients began, got ndarray float64"),
    ("due", arrivals(begun=np.full(3, 77)), "a version of the model for each step that clients began in, got none for"),
    ("due", arrivals(seconds=-1.0), r"seconds that are None or a number >= 0, got -1\.0"),
    ("due", arrivals(began=np.array([99])), "clients that began, from 0 to 5, got client 99"),
    ("timeline", lambda answer, owner: answer[0], "a function to who is there and until when, got ndarray bool"),
    (
        "timeline",
        lambda answer, owner: (owner, answer[1]),
        r"whether each is there, bool \[n\], got ndarray int64 \[6\]",
    ),
    ("timeline", lambda answer, owner: (answer[0][:1], answer[1]), r"is there, bool \[n\], got ndarray bool \[1\]"),
    ("timeline", lambda answer, owner: (answer[0], owner), r"until when that holds, float64 \[n\], got ndarray int64"),
    ("timeline", lambda answer, owner: (answer[0], answer[1] - 1), r"later than 0\.0, until when .* holds, got 0\.0"),
    ("timeline", lambda answer, owner: (answer[0], answer[1] + NAN), r"later than 0\.0, until when .* holds, got nan"),
    ("deliver", lambda answer: answer[::2], r"must return \(Uploads, float, dict\), got 2 values"),
    ("deliver", lambda answer: (answer[0], -1.0, {}), r"seconds >= 0 as a float, got float -1\.0"),
    ("deliver", lambda answer: (answer[0], NAN, {}), "seconds >= 0 as a float, got float nan"),
    ("deliver", lambda answer: (answer[0], np.float64(3), {}), "as a float, got float64 3"),
    (
        "regroup",
        lambda answer: (answer[0], {"events": (("join", 3),)}),
        r"events as tuples \(round, what, client, cluster, distance\), got \('join', 3\)",
    ),
    ("assign", lambda answer: (*answer[:2], answer[2] + 4, {}), "numbers of models from 0 to 0, got 4"),
    ("assign", lambda answer: (*answer[:2], answer[2][:1], {}), "a model's number for each of 3 participants"),
    (
        "choose",
        lambda answer, ctx: (replace(answer[0], deadline_s=NAN), {}),
        "a Plan whose deadline_s is a number or None, got float nan",
    ),
    (
        "choose",
        lambda answer, ctx: (answer[0], {"seen": torch.zeros(2, device="meta")}),
        r"numbers and texts, got Tensor torch.float32 \[2\] on meta as memory\['seen'\]",
    ),
    ("combine", layout(trainable=-1), "whose layout has the names and the trainable entries of those it was given"),
    ("combine", layout(shapes=((90.5,),)), "a Layout whose shapes is a tuple, each a tuple, each a whole number"),
    ("step", layout(names=("a", "b")), "whose layout has the names and the trainable entries"),
    ("tamper", column(owner=np.full(3, 77)), "Uploads whose owner is from -1 to 5, got 77"),
    ("tamper", column(model=np.full(3, 1)), "Uploads whose model is from 0 to 0, got 1"),
    ("tamper", column(examples=np.ones(3)), r"examples is an array of whole numbers \[C\], got ndarray float64 \[3\]"),
    ("tamper", column(importance=np.array(["a", "b", "c"])), "an Uploads whose importance is an array of numbers"),
    ("tamper", column(loss_after=np.array(3.0)), "what its contract says, got tuple, of which is said: TypeError"),
    (
        "deliver",
        column(exact=np.ones(3)),
        r"Uploads whose exact is None or an array \[C, 2\], got ndarray float64 \[3\]",
    ),
    ("assign", lambda answer: ((), *answer[1:]), "at least one model, got none"),
    ("assign", lambda answer: ((3,), *answer[1:]), "models that are Weights, got int 3"),
    ("assign", lambda answer: (answer[0], replace(answer[1], owner=np.array([99])), *answer[2:]), "got client 99"),
    ("facts", lambda facts: None, "facts must return Facts, got NoneType"),
    ("facts", lambda facts: replace(facts, shape=(3.5,)), "Facts whose shape is a tuple, each a whole number"),
    ("facts", lambda facts: replace(facts, classes=0), "Facts whose classes is at least 1, got 0"),
    ("facts", lambda facts: replace(facts, shape=()), "Facts whose shape is of numbers of at least 1"),
    ("load", lambda data: replace(data, test=None), "load must return Data whose test is a Split, got NoneType"),
    ("load", lambda data: replace(data, scale=0.0), "scale must be finite and > 0, got"),
    (
        "load",
        lambda data: replace(data, mean=(0.0, 1.0)),
        "mean must be one number, or one for each of 3 channels, got 2",
    ),
    ("load", lambda data: replace(data, groups=np.arange(3)), "groups must be whole numbers, one a training example"),
    ("load", split(lambda part: replace(part, subject=part.y[:2])), r"train.subject must be a tensor of int64 \[S\]"),
    ("judge", lambda answer: (3, {}), r"\(a reason or None, memory\), got tuple"),
    ("begin", lambda answer: answer[0], r"must return \(start, anchor\), got Tensor"),
    (
        "begin",
        lambda answer: (answer[0][:, :4], answer[1]),
        r"the start \[C, D\] as a tensor .* \[3, 90\], got .* \[3, 4\]",
    ),
    ("finish", lambda answer: (answer[0].double(), {}), r"the delta \[C, D\] as a tensor torch.float32"),
    ("load", lambda data: None, "load must return Data, got NoneType"),
    (
        "load",
        split(lambda part: replace(part, y=part.y.float())),
        r"train.y must be .* int64 labels \[S\], got torch.float32",
    ),
    ("load", split(lambda part: replace(part, y=part.y - 1)), "train.y must hold labels from 0 to 1, got -1 to 0"),
    ("load", split(lambda part: replace(part, y=part.y * 5)), "train.y must hold labels from 0 to 1, got 0 to 5"),
    ("load", split(lambda part: replace(part, y=part.y[:5])), "train.y must have a label an example, got 5 for 12"),
    ("load", split(lambda part: replace(part, x=part.x[:, :2])), r"that facts gives, got \(2,\)"),
    (
        "load",
        split(lambda part: replace(part, x=part.x.double())),
        "x must be a tensor of uint8 or float32, got torch.float64",
    ),
    ("load", split(lambda part: replace(part, x=part.x / 0)), "x must be finite"),
    ("load", split(lambda part: replace(part, x=part.x[:0], y=part.y[:0])), "facts says 12 training examples"),
    ("load", lambda data: replace(data, class_names=("a",)), "facts says 2 classes, but load names 1"),
    (
        "load",
        lambda data: replace(data, test=replace(data.test, x=data.test.x[:0])),
        "test.x must hold at least one example",
    ),
    ("facts", lambda facts: replace(facts, train_size=99), "facts says 99 training examples, but load gives 12"),
    ("facts", lambda facts: replace(facts, subjects=2), "facts says 2 subjects, but load gives none"),
]


@pytest.mark.parametrize(("method", "mistake", "told"), MISTAKES)
def test_a_wrong_answer_is_told_by_part_and_method(tiny: Tiny, method: str, mistake: Any, told: str):
    own_parts.MISTAKE[method] = mistake
    role, name = PARTS[method]
    with pytest.raises(ConfigError, match=told) as refused:
        two_rounds(config_of(tiny, method))
    assert str(refused.value).startswith(f"{role}=own_parts.{name}: ")
    assert "\n" not in str(refused.value)


def test_a_message_without_the_rows_that_the_rule_names_is_refused(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_parts.Stepped, "extra_rows", ("variate",))
    wanted = (
        r"finish must return the delta \[C, D\] with a row \[C, P\] behind it for variate, as a tensor .* \[3, 180\]"
    )
    with pytest.raises(ConfigError, match=wanted):
        two_rounds(config_of(tiny, "finish"))


@pytest.mark.parametrize("error", [ZeroDivisionError, StopIteration, GeneratorExit])
@pytest.mark.parametrize("method", PARTS)
def test_what_a_part_raises_is_told_by_class_method_and_line(
    tiny: Tiny,
    method: str,
    error: type[BaseException],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    def fail(*_: Any) -> None:
        raise error("by nothing\nat all")

    own_parts.MISTAKE[method] = fail
    for debug in ("", "1"):
        monkeypatch.setenv("FEDEXP_DEBUG", debug)
        with pytest.raises(CommandExit) as stopped, exit_on_error(tmp_path):
            run(config_of(tiny, method), tmp_path / (debug or "0"))
        code, said = stopped.value.report(), capsys.readouterr().err
        assert code == 1
        assert f"{error.__name__}: by nothing" in said
        assert f"own_parts.{PARTS[method][1]}.{method} (own_parts.py, line " in said
        assert ("Traceback" in said) == bool(debug)
        assert debug or said.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Idle", "selector._target_=own_parts.Idle must define choose"),
        ("Torn", "selector._target_=own_parts.Torn cannot be made: KeyError: 'torn'"),
        ("Made", "selector must be a Selector, got Made"),
        ("Nothing", "selector._target_ must name a part, but own_parts.Nothing does not exist"),
    ],
)
def test_a_class_that_is_no_part_is_refused_before_anything_is_loaded(tiny: Tiny, name: str, told: str):
    with pytest.raises(ConfigError, match=told):
        spec.build({**tiny(), "selector": {"_target_": f"own_parts.{name}"}})


def test_an_aggregator_needs_either_of_two_methods(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"aggregator._target_=own_parts.IdleAggregator must define reduce"):
        spec.build({**tiny(), "aggregator": {"_target_": "own_parts.IdleAggregator"}})
    assert spec.build({**tiny(), "aggregator": {"_target_": "own_parts.Combining"}})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class A(\n", "cannot be imported: SyntaxError: "),
        ("import no_such_module_of_anyone\n", "cannot be imported: No module named 'no_such_module_of_anyone'"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError: division by zero"),
        (
            "import dataclasses\nfrom fedexp.parts import Stop\n@dataclasses.dataclass\nclass A(Stop): pass",
            "cannot be imported: TypeError: cannot inherit non-frozen dataclass from a frozen one",
        ),
        (
            "import dataclasses as d\nfrom fedexp.parts import Stop\n@d.dataclass(frozen=True)\nclass A(Stop): pass",
            "cannot be imported: TypeError: Cannot overwrite .*; a part is a dataclass by itself, leave @dataclass out",
        ),
    ],
)
def test_a_module_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str):
    name = f"broken_{abs(hash(text))}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=f"^selector._target_={name}.A {told}"):
        spec.find_class(f"{name}.A", "selector")


def test_every_check_belongs_to_a_method_of_its_contract(tiny: Tiny):
    exp = spec.build(tiny())
    for name in CHECKS:
        role, method = name.split(".")
        assert callable(getattr(exp.part(role), method))


def test_numbers_that_grow_beyond_all_bounds_are_not_the_aggregators_fault(tiny: Tiny):
    own_parts.MISTAKE["tamper"] = rows(lambda delta: delta.fill_(3e38))
    config = {**config_of(tiny, "tamper"), "aggregator": {"_target_": "own_parts.Combining"}}
    with pytest.raises(RunError, match="the global model is not finite after round 1"):
        two_rounds(config)
