"""Fifteen people in three groups, three of them the server's: twelve clients whose labels mean other things."""

GROUPED = (
    "dataset=synthetic",
    "dataset.subjects=15",
    "dataset.groups=3",
    "dataset.train_size=6000",
    "dataset.test_size=300",
    "federation=subject",
    "federation.server_persons=3",
    "scenario.participants=12",
)
SIMILAR = ("clustering=output_similarity", "clustering.threshold=1.4")
