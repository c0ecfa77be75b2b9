"""Runs PFLlib's main.py on the quadratics: python run_pfllib.py FOLDER METHOD STEPS ROUNDS RATE.

FOLDER is a checkout, and the working folder one that may be thrown away. The data lie where its datasets lie, and its
model `MLR` is replaced. It does not write every method's last model, so that the server is remembered when it is made.
"""

import runpy
import sys
from pathlib import Path

import numpy as np
import problem

METHODS = {
    "fedavg": ("FedAvg", ()),
    "prox": ("FedProx", ("-mu", "1")),
    "prox_0": ("FedProx", ("-mu", "0")),
    "scaffold": ("SCAFFOLD", ()),
    "feddyn": ("FedDyn", ("-al", "1")),
    "ditto": ("Ditto", ("-mu", "1")),
    "apfl": ("APFL", ("-al", "0.5")),
    "pfedme": ("pFedMe", ("-lam", "1", "-bt", "1", "-K", "200", "-lrp", "0.1")),
}


def main(folder: str, method: str, steps: str, rounds: str, rate: str) -> None:
    """Writes the data, runs the program and prints its last model."""
    system = Path(folder, "system")
    sys.path.insert(0, str(system))
    problem.replace_cross_entropy()
    from flcore.servers import serverbase  # type: ignore[import-not-found]
    from flcore.trainmodel import models  # type: ignore[import-not-found]

    models.Mclr_Logistic = problem.PlaneModel
    servers = []
    prepare = serverbase.Server.__init__

    def remember(server: object, *words: object) -> None:
        servers.append(server)
        prepare(server, *words)

    serverbase.Server.__init__ = remember
    for part in ("train", "test"):
        for client in range(len(problem.MINIMA)):
            x, y = problem.client_data(client)
            path = Path("..", "dataset", "plane", part, f"{client}.npz")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, data=np.array({"x": x.numpy(), "y": y.numpy()}, dtype=object))
    algorithm, words = METHODS[method]
    size = ["-nc", str(len(problem.MINIMA)), "-ncl", str(problem.OUTPUTS), "-lbs", str(problem.EXAMPLES)]
    length = ["-ls", steps, "-gr", str(int(rounds) - 1), "-lr", rate]  # it runs one round more than -gr says
    sys.argv = ["main.py", "-data", "plane", "-m", "MLR", "-dev", "cpu", "-algo", algorithm, *size, *length, *words]
    runpy.run_path(str(system / "main.py"), run_name="__main__")
    problem.print_model(servers[0].global_model.parameters())


if __name__ == "__main__":
    main(*sys.argv[1:])
