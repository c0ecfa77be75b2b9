"""A plan as a table for people, and as JSON for programs."""

from dataclasses import asdict
from typing import Any

from fedexp.core.nested import json_text
from fedexp.plan.plan import Forecast
from fedexp.plan.request import PlanRequest
from fedexp.process.terminal import format_duration


def table(plan: Forecast, request: PlanRequest) -> str:
    """Plain text, one aligned line for each item; what does not exist is left out."""
    rows = [
        (
            "sweep",
            f"{request.points} points, each as costly as the first: {request.point}" if request.points > 1 else None,
        ),
        ("engine", f"{plan.choice.name}: {plan.choice.reason}"),
        ("device", f"{plan.device}, {plan.workers} worker{'s' * (plan.workers > 1)}"),
        ("rounds", _rounds(plan)),
        *_times(plan, request),
        ("peak memory", _memory(plan)),
        ("rows in memory", _rows(plan)),
        ("versions", _versions(plan)),
        (f"sent down, up{', a point' * (request.points > 1)}", _traffic(plan)),
        (
            "simulated time",
            None if plan.sent.sim_s is None else f"{_limit(plan)}{plan.sent.sim_s:,.2f} s ({_certainty(plan)})",
        ),
        ("epsilon", _epsilon(plan)),
        (
            f"disk{', all points' * (request.points > 1)}",
            _missing_text(plan) if plan.disk_mb is None else _size(plan.disk_mb * request.points),
        ),
        ("tried in part", "; ".join(plan.parts) or None),
        ("counted", None if plan.counted is None else f"{plan.counted:,} rounds; all would have taken too long"),
    ]
    shown = [(name, value) for name, value in rows if value is not None]
    width = max(len(name) for name, _ in shown)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in shown)


def as_json(plan: Forecast, request: PlanRequest) -> str:
    """All numbers in full precision; for a sweep those of one point, and the number of points."""
    entries: dict[str, Any] = asdict(plan) | {"points": request.points}
    entries["engine"] = entries.pop("choice") | {"workers": entries.pop("workers")}
    if plan.seconds is not None:
        entries["seconds"] |= {"total": plan.seconds.total, "all_points": plan.seconds.of_points(request.points)}
    return json_text(entries)


def _rounds(plan: Forecast) -> str:
    tried = f"{plan.tried} of them tried{' in part' * bool(plan.parts)}"
    if plan.gave_up is not None and plan.tried:
        tried = f"{tried} ({plan.gave_up})"
    if plan.reason is not None:
        return f"{_limit(plan)}{plan.rounds:,}, {tried}; then {plan.reason}"
    return f"{_limit(plan)}{plan.rounds:,}, {tried}"


def _limit(plan: Forecast) -> str:
    return f"{plan.limit} " if plan.limit else ""


def _times(plan: Forecast, request: PlanRequest) -> list[tuple[str, str]]:
    spent = plan.seconds
    if spent is None:
        return [("run time", _missing_text(plan))]
    parts = (
        f"start {format_duration(spent.start)}, first round {format_duration(spent.first)}, "
        f"then {format_duration(spent.round)} a round"
    )
    limit = _limit(plan)
    if spent.slows_down:
        limit = "at least " if plan.limit in ("", "at least") else "about "
        parts = f"{parts}, more with every new client"
    run_time = ("run time", f"{limit}{format_duration(spent.total)} ({parts}, end {format_duration(spent.closing)})")
    if request.points == 1:
        return [run_time]
    once = f"one after another, the program's own {format_duration(spent.process)} once"
    return [run_time, ("all points", f"{limit}{format_duration(spent.of_points(request.points))} ({once})")]


def _memory(plan: Forecast) -> str:
    if plan.memory_mb is None:
        return _missing_text(plan)
    return _size(plan.memory_mb) + (f", of the GPU {_size(plan.gpu_mb)}" if plan.gpu_mb else "")


def _rows(plan: Forecast) -> str:
    rows = plan.rows
    why = f"; all of a round because of {', '.join(rows.needed_by)}" if rows.needed_by else ""
    companions = f" and {rows.companions:,} of the clients' own models" if rows.companions else ""
    return f"{rows.messages:,}{companions} ({_size(rows.mb)}){why}"


def _versions(plan: Forecast) -> str | None:
    if plan.versions is None:
        return None
    size = f"{plan.versions.models:,} earlier models ({_size(plan.versions.mb)}) that clients train on at once"
    return size if plan.versions.known else f"at most {size}"


def _traffic(plan: Forecast) -> str:
    down, up = plan.sent.mb_down, plan.sent.mb_up
    return (
        _missing_text(plan)
        if down is None or up is None
        else f"{'at least ' if plan.sent.grows else _limit(plan)}{_size(down)}, {_size(up)} ({_certainty(plan)})"
    )


def _missing_text(plan: Forecast) -> str:
    """In place of what only a tried round tells."""
    return f"- ({plan.gave_up or 'this system does not tell'})"


def _epsilon(plan: Forecast) -> str | None:
    if plan.epsilon is None:
        return None
    certainty = _certainty(plan) if plan.sent.known else "at most: as if everybody took part in every round"
    pld, rdp = plan.epsilon["pld"], plan.epsilon["rdp"]
    return f"{pld:.4g} (PLD), {rdp:.4g} (RDP) at delta {plan.delta:g} ({certainty})"


def _certainty(plan: Forecast) -> str:
    if plan.sent.known:
        return "the rounds that were counted" if plan.limit == "at least" else "exact"
    growth = ", and more is sent with every new client" * plan.sent.grows
    return f"estimate from {plan.tried} round{'s' * (plan.tried > 1)}{growth}"


def _size(megabytes: float) -> str:
    if megabytes < 1:
        return f"{megabytes * 1e3:,.0f} kB"
    return f"{megabytes:,.1f} MB" if megabytes < 1e4 else f"{megabytes / 1e3:,.1f} GB"
