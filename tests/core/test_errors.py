from fedexp.core.errors import closest_names, did_you_mean


def test_of_a_long_list_those_that_resemble_the_name_come_first():
    known = [f"cell {letter}" for letter in "abcdefghij"]
    assert (
        closest_names("CELL j", known)
        == "cell j, cell a, cell b, cell c, cell d, cell e, cell f, cell g, ... (10 in all)"
    )
    assert closest_names("CELL j", known[:8], "; ") == "; ".join(known[:8])


def test_a_hint_lists_few_names_or_those_that_are_near():
    assert did_you_mean("medain", ["median", "krum"]) == "did you mean median?"
    assert did_you_mean("xyz", ["mean", "krum"]) == "known: krum, mean"
    assert did_you_mean("xyz", [f"column {n}" for n in range(1000)]).endswith(", ... (1000 in all)")
