"""A plan as a table for people, and as JSON for programs."""

import json
import math
from dataclasses import asdict
from typing import Any

from fedexp.core.durations import spoken
from fedexp.plan.asked import PlanRequest
from fedexp.plan.plan import Forecast


def table(plan: Forecast, asked: PlanRequest) -> str:
    """Plain text, one aligned line for each item; what does not exist is left out."""
    rows = [
        ("sweep", f"{asked.points} points, each as costly as the first: {asked.point}" if asked.points > 1 else None),
        ("engine", f"{plan.choice.name}: {plan.choice.reason}"),
        ("device", f"{plan.device}, {plan.workers} worker{'s' * (plan.workers > 1)}"),
        ("rounds", _rounds(plan)),
        *_times(plan, asked),
        ("peak memory", _memory(plan)),
        ("sent down, up", _sent(plan)),
        (
            "simulated time",
            None if plan.sent.sim_s is None else f"{_limit(plan)}{plan.sent.sim_s:,.2f} s ({_sure(plan)})",
        ),
        ("epsilon", _epsilon(plan)),
        ("disk", _missing(plan) if plan.disk_mb is None else _size(plan.disk_mb * asked.points)),
        ("tried in part", "; ".join(plan.parts) or None),
        ("counted", None if plan.counted is None else f"{plan.counted:,} rounds; all would have taken too long"),
    ]
    shown = [(name, value) for name, value in rows if value is not None]
    width = max(len(name) for name, _ in shown)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in shown)


def as_json(plan: Forecast, asked: PlanRequest) -> str:
    """All numbers in full precision; for a sweep those of one point, and the number of points."""
    told: dict[str, Any] = asdict(plan) | {"points": asked.points}
    told["engine"] = told.pop("choice") | {"workers": told.pop("workers")}
    if plan.seconds is not None:
        told["seconds"]["total"] = plan.seconds.total
    if plan.epsilon is not None:
        told["epsilon"] = {name: value if math.isfinite(value) else None for name, value in plan.epsilon.items()}
    return json.dumps(told, indent=2, allow_nan=False) + "\n"


def _rounds(plan: Forecast) -> str:
    tried = f"{plan.tried} of them tried{' in part' * bool(plan.parts)}"
    if plan.gave_up is not None and plan.tried:
        tried = f"{tried} ({plan.gave_up})"
    if plan.reason is not None:
        return f"{_limit(plan)}{plan.rounds:,}, {tried}; then {plan.reason}"
    return f"{_limit(plan)}{plan.rounds:,}, {tried}"


def _limit(plan: Forecast) -> str:
    return f"{plan.limit} " if plan.limit else ""


def _times(plan: Forecast, asked: PlanRequest) -> list[tuple[str, str]]:
    spent = plan.seconds
    if spent is None:
        return [("host time", _missing(plan))]
    parts = f"start {spoken(spent.start)}, first round {spoken(spent.first)}, then {spoken(spent.round)} a round"
    limit = _limit(plan)
    one = ("host time", f"{limit}{spoken(spent.total)} ({parts}, end {spoken(spent.closing)})")
    if asked.points == 1:
        return [one]
    return [one, ("all points", f"{limit}{spoken(spent.total * asked.points)}")]


def _memory(plan: Forecast) -> str:
    if plan.memory_mb is None:
        return _missing(plan)
    return _size(plan.memory_mb) + (f", of the GPU {_size(plan.gpu_mb)}" if plan.gpu_mb else "")


def _sent(plan: Forecast) -> str:
    down, up = plan.sent.mb_down, plan.sent.mb_up
    return _missing(plan) if down is None or up is None else f"{_limit(plan)}{_size(down)}, {_size(up)} ({_sure(plan)})"


def _missing(plan: Forecast) -> str:
    """In place of what only a tried round tells."""
    return f"- ({plan.gave_up or 'this system does not tell'})"


def _epsilon(plan: Forecast) -> str | None:
    if plan.epsilon is None:
        return None
    sure = _sure(plan) if plan.sent.known else "at most: as if everybody took part in every round"
    pld, rdp = plan.epsilon["pld"], plan.epsilon["rdp"]
    return f"{pld:.4g} (PLD), {rdp:.4g} (RDP) at delta {plan.delta:g} ({sure})"


def _sure(plan: Forecast) -> str:
    if plan.sent.known:
        return "the rounds that were counted" if plan.limit == "at least" else "exact"
    return f"estimate from {plan.tried} round{'s' * (plan.tried > 1)}"


def _size(megabytes: float) -> str:
    if megabytes < 1:
        return f"{megabytes * 1e3:,.0f} kB"
    return f"{megabytes:,.1f} MB" if megabytes < 1e4 else f"{megabytes / 1e3:,.1f} GB"
