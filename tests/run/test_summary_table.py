from fedexp.run.summary_table import summary_table

SUMMARY = {
    "final_accuracy": 0.95,
    "best_accuracy": 0.9611,
    "loss_auc": 12.3456,
    "accuracy_auc": None,
    "roa": {0.3: 1, 0.5: 2, 0.7: 4, 0.8: 5, "0.9": 12, 0.95: None},
    "toa": {0.3: 0.1, 0.5: 0.2, 0.7: 0.4, 0.8: 0.5, "0.9": 1252.4, 0.95: None},
    "rounds": 30,
    "updates": 1300,
    "host_s": 3.214,
    "sim_s": None,
    "folder": "outputs/run",
}


def test_the_table_by_hand():
    assert summary_table(SUMMARY) == "\n".join(
        [
            "final accuracy  0.9500",
            "best accuracy   0.9611",
            "loss AUC        12.35",
            "RoA@0.5         round 2",
            "RoA@0.7         round 4",
            "RoA@0.8         round 5",
            "RoA@0.9         round 12",
            "ToA@0.5         0.20 s",
            "ToA@0.7         0.40 s",
            "ToA@0.8         0.50 s",
            "ToA@0.9         1,252.40 s",
            "rounds          30",
            "updates         1,300",
            "host time       3.21 s",
            "folder          outputs/run",
        ]
    )


def test_the_best_that_were_reached_are_the_least_where_less_is_better():
    told = summary_table({"final_rmse": 0.5, "roa": {0.5: 9, 0.6: 7, 0.7: 5, 0.8: 3, 0.9: 1}})
    assert told.splitlines()[1:] == [
        "RoA@0.8     round 3",
        "RoA@0.7     round 5",
        "RoA@0.6     round 7",
        "RoA@0.5     round 9",
    ]


def test_further_metrics_and_that_of_the_clients_own_models_follow_the_main_one():
    told = summary_table({**SUMMARY, "final_perplexity": 12.34567, "final_personal_accuracy": 0.5, "final_ece": None})
    assert told.splitlines()[2:5] == [
        "final perplexity         12.35",
        "final personal_accuracy  0.5",
        "loss AUC                 12.35",
    ]


def test_simulated_time_is_shown_where_it_exists():
    assert "simulated time  5,069.00 s" in summary_table({**SUMMARY, "sim_s": 5069.0})


def test_nothing_is_needed():
    assert summary_table({}) == ""


def test_a_promise_is_told_with_both_epsilons():
    told = {"epsilon_pld": 2.99912, "epsilon_rdp": 3.41, "delta": 1e-5, "noise_multiplier": 1.0}
    assert summary_table({"privacy": told}) == "epsilon  2.999 (PLD), 3.41 (RDP) at delta 1e-05"
    assert summary_table({"privacy": None}) == ""
    told |= {"epsilon_pld": float("inf"), "epsilon_rdp": float("inf")}
    assert summary_table({"privacy": told}) == "epsilon  inf (PLD), inf (RDP) at delta 1e-05"
