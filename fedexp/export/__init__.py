"""Takes a trained model out of a run: its weights, the code of its network, and how examples become its inputs."""
