"""By which model the trials of a search are judged."""

from fedexp.simulation.setup.experiment import Experiment

GLOBAL = (
    "trials are judged by the global model, which the clients of a personal method may not use; "
    "evaluation.validation_at=clients judges them by the models that clients use"
)


def describe_judge(exp: Experiment) -> str:
    """A sentence where that is the global model, though clients may use others; else empty."""
    serves_others = exp.evaluation.personal or exp.local.companion is not None or exp.clustering.has_clusters
    is_global = not (exp.evaluation.validates_at_clients or exp.scenario.trains_alone)
    return GLOBAL if serves_others and is_global else ""
