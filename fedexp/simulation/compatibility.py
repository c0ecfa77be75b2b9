"""Which parts cannot work where clients learn in clusters, because they count on one model of all clients."""

from typing import TYPE_CHECKING

from fedexp.core.errors import ConfigError
from fedexp.core.part import option

if TYPE_CHECKING:
    from fedexp.simulation.experiment import Experiment


def refuse(exp: "Experiment") -> None:
    """Raises ConfigError where another part would need one model for all, or the clusterings more clients."""
    exp.clustering.refuse(exp.federation.known_clients())
    if not exp.clustering.divides:
        return
    several = f"but clustering={option(exp.clustering)} has several"
    if exp.evaluation.local_models:
        raise ConfigError(
            f"evaluation.local_models follows one global model, {several}; use evaluation.personal_fraction"
        )
    if exp.selector.needs_one_model:
        raise ConfigError(
            f"selector={option(exp.selector)} {exp.selector.needs_one_model}, {several}; use selector=random"
        )
    if exp.aggregator.keeps_rows:
        raise ConfigError(
            f"aggregator={option(exp.aggregator)} counts every client that it never heard of in one global model, "
            f"{several}; use aggregator=geometric_median"
        )
    if exp.audit.needs_uploads:
        raise ConfigError(
            f"audit={option(exp.audit)} audit.score=uploads compares what a client sends with gradients of one global "
            f"model, {several}; use audit.score=loss"
        )
