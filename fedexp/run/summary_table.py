"""The table on the terminal at the end of a run."""

from collections.abc import Mapping
from typing import Any

from fedexp.files.summary_json import main_metric
from fedexp.maths.curve_metrics import higher_is_better

_SHOWN = 4  # the best thresholds that were reached


def summary_table(summary: Mapping[str, Any]) -> str:
    """Plain text, one number a line, aligned; what does not exist is left out."""
    main = main_metric(summary)
    further = [name for name in summary if name.startswith("final_") and name != f"final_{main}"]
    rows = [
        (f"final {main}", _number(summary, f"final_{main}", "{:.4f}")),
        (f"best {main}", _number(summary, f"best_{main}", "{:.4f}")),
        *((f"final {name.removeprefix('final_')}", _number(summary, name, "{:.4g}")) for name in further),
        ("loss AUC", _number(summary, "loss_auc", "{:.4g}")),
        (f"{main} AUC", _number(summary, f"{main}_auc", "{:.4g}")),
        ("epsilon", _epsilon(summary.get("privacy") or {})),
        *_thresholds(summary.get("roa") or {}, summary.get("toa") or {}, higher_is_better(main)),
        ("rounds", _number(summary, "rounds", "{:,d}")),
        ("skipped", _number(summary, "skipped_rounds", "in {:,d} rounds the model stayed as it was")),
        ("updates", _number(summary, "updates", "{:,d}")),
        ("host time", _number(summary, "host_s", "{:,.2f} s")),
        ("simulated time", _number(summary, "sim_s", "{:,.2f} s")),
        ("folder", summary.get("folder")),
    ]
    shown = [(name, str(value)) for name, value in rows if value is not None]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in shown)


def _thresholds(roa: Mapping[Any, int | None], toa: Mapping[Any, float | None], higher: bool) -> list[tuple[str, str]]:
    rounds = {float(x): value for x, value in roa.items() if value is not None}
    times = {float(x): value for x, value in toa.items() if value is not None}
    best = sorted(rounds.keys() | times.keys(), reverse=not higher)[-_SHOWN:]
    rows = [(f"RoA@{x:g}", f"round {rounds[x]}") for x in best if x in rounds]
    return rows + [(f"ToA@{x:g}", f"{times[x]:,.2f} s") for x in best if x in times]


def _epsilon(privacy: Mapping[str, Any]) -> str | None:
    pld, rdp = privacy.get("epsilon_pld"), privacy.get("epsilon_rdp")
    if pld is None or rdp is None:
        return None
    return f"{pld:.4g} (PLD), {rdp:.4g} (RDP) at delta {privacy['delta']:g}"


def _number(summary: Mapping[str, Any], key: str, form: str) -> str | None:
    value = summary.get(key)
    return None if value is None else form.format(value)
