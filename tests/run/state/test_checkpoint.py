"""What a saved state promises: it comes back as it was, or the one before it does, or it is refused in words."""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import torch
from worlds import world_of

from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout, State, Weights
from fedexp.run.state import checkpoint
from fedexp.simulation.rounds import run_rounds

Tiny = Callable[..., dict[str, Any]]

CPU = torch.device("cpu")
CONFIG = {"seed": 0, "local": {"lr": 0.1, "hidden": [8, 4]}, "engine": {"workers": 1}}
MADE_BY = {"name": "loop", "reason": "as asked"}
PARTS = ("format", "config", "engine", "round", "models", "memory", "sim_s", "host_s", "updates")
EVERY_KIND = {
    "tensors": {
        "single": torch.tensor([0.1, -1e-45, torch.inf]),
        "double": torch.tensor([[1 / 3]], dtype=torch.float64),
        "whole": torch.tensor([2**53 + 1]),
        "mask": torch.tensor([True, False]),
        "nothing": torch.zeros((0, 3)),
        "scalar": torch.tensor(0.25),
    },
    "numbers": {"whole": 2**70, "real": 0.1 + 0.2, "infinite": -math.inf, "yes": True, "none": None},
    "texts": {"empty": "", "reason": "0.5 ± 0.1 µs,\nand a second line"},
    "tuples": {"empty": (), "nested": (1, (2.5, "three"), {"four": torch.tensor([4])})},
    "empty": {},
}


def state_of(number: int, **memory: Any) -> State:
    """The state after a round, recognisable by its models' values."""
    dense = Layout(("weight", "bias", "mean"), ((2, 3), (2,), (2,)), 2)
    models = (Weights(torch.full((10,), number / 3), dense), Weights(torch.zeros(1), Layout(("w",), ((),), 1)))
    return State(number, models, memory, sim_s=number * 0.1, host_s=number * 0.7, updates=number * 10)


def same(one: Any, other: Any) -> bool:
    """Whether two nests are equal in every value and every type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return same(vars(one), vars(other)) if isinstance(one, State | Weights) else one == other


def save(folder: Path, state: State) -> None:
    checkpoint.save(folder, state, CONFIG, MADE_BY)


def load(folder: Path) -> State | None:
    found = checkpoint.load(folder, CONFIG, CPU)
    return found.state if found else None


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_every_kind_of_value_comes_back(tmp_path: Path):
    state = state_of(3, **EVERY_KIND)
    save(tmp_path, state)
    found = checkpoint.load(tmp_path, CONFIG, CPU)
    assert found is not None
    assert same(found.state, state)
    assert found.engine == MADE_BY


SPENT = ("privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3", "aggregator.weighting=uniform")
ASKED = {
    "stop=privacy_budget": ("privacy=dp_sgd", *SPENT, "stop.epsilon=1000"),
    "privacy=dp_sgd": SPENT,
    "privacy=client_local": SPENT,
    "privacy=client_central": SPENT,
    "clustering=output_similarity": ("scenario.public_fraction=0.2",),
    "local=fedem": ("model=mixture",),
}


def remembering() -> list[tuple[str, ...]]:
    """Every option of the roles that have a memory, and a model whose clients keep columns."""
    roles = ("selector", "fleet", "aggregator", "server_optimizer", "stop", "privacy", "clustering", "local")
    options = [(role, path.stem) for role in roles for path in sorted((conf_dir() / role).glob("*.yaml"))]
    parts = [
        ("fleet=simulated", f"{role}={option}", *ASKED.get(f"{role}={option}", ()))
        for role, option in options
        if option != "none"
    ]
    return [*parts, ("model=complex_cnn", "model.buffers=local", "dataset.shape=[1,8,8]")]


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("words", remembering(), ids=lambda words: words[1])
def test_what_every_part_remembers_comes_back(tiny: Tiny, tmp_path: Path, words: tuple[str, ...]):
    world = world_of(tiny(*words))
    *_, (state, _, _) = run_rounds(world.exp, world, world.initial_state())
    save(tmp_path, state)
    assert same(load(tmp_path), state)


def test_nothing_saved_is_nothing_loaded(tmp_path: Path):
    assert load(tmp_path) is None


def test_the_newest_and_the_one_before_it_are_kept(tmp_path: Path):
    for number in (1, 2, 3):
        save(tmp_path, state_of(number))
    assert sorted(contents(tmp_path)) == ["state.previous.pt", "state.pt"]
    assert same(load(tmp_path), state_of(3))
    (tmp_path / "state.pt").unlink()  # a crash between the two renames
    assert same(load(tmp_path), state_of(2))


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: b"no state at all",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1],
        lambda raw: raw.replace(b"memory", b"memori"),
        lambda raw: raw.replace(state_of(2).models[0].flat.numpy().tobytes(), bytes(40)),
    ],
    ids=["empty", "text", "half", "cut", "name", "weights"],
)
def test_a_damaged_state_falls_back_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
):
    save(tmp_path, state_of(1))
    save(tmp_path, state_of(2))
    newest = tmp_path / "state.pt"
    whole = newest.read_bytes()
    newest.write_bytes(damage(whole))
    assert newest.read_bytes() != whole
    assert same(load(tmp_path), state_of(1))
    assert caplog.messages == [f"{newest} is damaged; falling back to the state after round 1"]
    caplog.clear()
    assert same(load(tmp_path), state_of(1)), "the state that was believed is the newest from then on"
    assert not caplog.messages


def test_no_flipped_bit_passes_for_the_state(tmp_path: Path):
    save(tmp_path, state_of(1))
    save(tmp_path, state_of(2))
    newest = tmp_path / "state.pt"
    whole = newest.read_bytes()
    for place in range(0, len(whole), 17):
        newest.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        found = load(tmp_path)
        assert same(found, state_of(1)) or same(found, state_of(2)), f"byte {place}"


def test_a_state_that_unpacks_to_more_than_it_has_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save(tmp_path, state_of(1))
    with (
        zipfile.ZipFile(tmp_path / "state.pt") as plain,
        zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for record in plain.namelist():
            packed.writestr(record, plain.read(record))
        packed.writestr("archive/data/9", bytes(100_000))
    (tmp_path / "packed.pt").replace(tmp_path / "state.pt")
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    assert load(tmp_path) is None


def test_two_damaged_states_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for name in ("state.pt", "state.previous.pt"):
        (tmp_path / name).write_bytes(b"damaged")
    assert load(tmp_path) is None
    newest, previous = tmp_path / "state.pt", tmp_path / "state.previous.pt"
    assert caplog.messages == [f"{newest} is damaged; {previous} is damaged; starting over"]


def test_rounds_without_a_state_are_begun_again_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert load(tmp_path) is None
    assert not caplog.messages
    (tmp_path / "metrics.csv").write_text("round,test_loss\n1,2.0\n")
    assert load(tmp_path) is None
    assert caplog.messages == [f"{tmp_path} has a metrics.csv, but no saved state; starting over"]


def changed(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update({key: value})


LAYOUT = {"names": ["w"], "shapes": [[2]], "trainable": 1}
INCOMPLETE = {
    **{f"no {part}": (lambda content, part=part: content.pop(part)) for part in sorted(PARTS)},
    "a negative round": changed("round", -1),
    "a round in words": changed("round", "2"),
    "a round that is true": changed("round", True),
    "seconds that are none": changed("host_s", math.nan),
    "no model at all": changed("models", []),
    "a model without a layout": changed("models", [torch.zeros(2)]),
    "a row that is too short": changed("models", [(torch.zeros(1), LAYOUT)]),
    "a row of whole numbers": changed("models", [(torch.zeros(2, dtype=torch.int64), LAYOUT)]),
    "a matrix": changed("models", [(torch.zeros(2, 1), LAYOUT)]),
    "a negative shape": changed("models", [(torch.zeros(2), {**LAYOUT, "shapes": [[-2]]})]),
    "a memory of numbers": changed("memory", {"selector": 3}),
    "a reason to stop of numbers": changed("memory", {"stop": {"reason": 5}}),
    "an unnamed engine": changed("engine", {"name": "loop"}),
    "surroundings of numbers": changed("surroundings", {"torch": 2}),
    "earlier surroundings that are no table": changed("earlier_surroundings", ["2.9"]),
    "a config of words": changed("config", "words"),
}


@pytest.mark.parametrize("damage", INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_state_that_loads_but_lacks_parts_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[dict[str, Any]], None]
):
    save(tmp_path, state_of(1))
    save(tmp_path, state_of(2))
    newest = tmp_path / "state.pt"
    content = torch.load(newest, weights_only=True)
    damage(content)
    torch.save(content, newest)
    assert same(load(tmp_path), state_of(1))
    assert caplog.messages == [f"{newest} is damaged; falling back to the state after round 1"]


@pytest.mark.parametrize("content", [3, [1], "words", {}, {"format": "1"}, torch.zeros(3)])
def test_what_is_no_state_at_all_is_damaged(tmp_path: Path, content: Any):
    save(tmp_path, state_of(1))
    save(tmp_path, state_of(2))
    torch.save(content, tmp_path / "state.pt")
    assert same(load(tmp_path), state_of(1))


def test_the_last_state_without_an_objection_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for number in (1, 2, 3):
        save(tmp_path, state_of(number))
        checkpoint.keep(tmp_path, number)

    def objection(state: State) -> str:
        return "is too new" if state.round > 1 else ""

    found = checkpoint.load(tmp_path, CONFIG, CPU, objection)
    assert found is not None
    assert same(found.state, state_of(1))
    assert caplog.messages[0].endswith("is too new; falling back to the state after round 1")
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="is never right; put the files back as they were, or delete the states to"):
        checkpoint.load(tmp_path, CONFIG, CPU, lambda _: "is never right")
    assert contents(tmp_path) == before


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save(tmp_path, state_of(1))
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    save(tmp_path, state_of(2))
    monkeypatch.undo()
    before = contents(tmp_path)
    with pytest.raises(
        ConfigError, match=r"has format 2, but this version reads 1; resume with the fedexp that wrote it$"
    ):
        load(tmp_path)
    assert contents(tmp_path) == before


def test_another_config_is_refused_by_its_keys(tmp_path: Path):
    save(tmp_path, state_of(1))
    other = {"seed": 1, "local": {"lr": 0.1, "hidden": [8]}, "engine": {"workers": 1}, "rounds": 5}
    differing = r"local\.hidden \(then \[8, 4\], now \[8\]\), rounds \(then None, now 5\), seed .* now 1\)"
    with pytest.raises(ConfigError, match=f"belongs to another config: {differing}; restore these keys"):
        checkpoint.load(tmp_path, other, CPU)


def test_keys_that_change_no_result_are_free(tmp_path: Path):
    save(tmp_path, state_of(1))
    moved = {**CONFIG, "engine": {"workers": 4, "device": "cpu"}, "data_dir": "/elsewhere", "checkpoint_s": 1.0}
    assert checkpoint.load(tmp_path, moved, CPU) is not None


def test_a_failing_save_leaves_everything_as_it_was(tmp_path: Path):
    save(tmp_path, state_of(1))
    save(tmp_path, state_of(2))
    before = contents(tmp_path)
    with pytest.raises(Exception, match="lambda"):  # which exception is pickle's affair
        save(tmp_path, state_of(3, selector={"rule": lambda: None}))
    assert contents(tmp_path) == before


def test_a_failing_write_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def half(_: Any, file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError("the disk is full")

    save(tmp_path, state_of(1))
    save(tmp_path, state_of(2))
    before = contents(tmp_path)
    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(OSError, match="the disk is full"):
        save(tmp_path, state_of(3))
    assert contents(tmp_path) == before
