"""How many examples sites have, from tables of which nothing is believed."""

import pytest

from fedexp.report.read.runs import collect_runs
from fedexp.report.read.site_counts import site_counts


@pytest.mark.parametrize("cell", ["²", "9" * 4301, "many", ""])
def test_only_whole_numbers_are_counted(make_run, tmp_path, cell):
    (make_run("0") / "federation.csv").write_text(
        "client,name,examples,well,sick\n0,north,3,1,2\n1,south,3,3,0\n", encoding="utf-8"
    )
    (tmp_path / "0" / "client_scores.csv").write_text(
        f"client,name,examples,positives\n0,north,5,4\n1,south,{cell},{cell}\n", encoding="utf-8"
    )
    counts = site_counts(collect_runs([tmp_path])[0])
    assert counts["trained on"] == {"north": "3", "south": "3"}
    assert counts["scored on"] == {"north": "5"}
    assert counts["of them sick"] == {"north": "4"}, "those that are scored"
    assert list(counts) == ["scored on", "of them sick", "trained on"]
