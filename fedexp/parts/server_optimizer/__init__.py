"""Server optimizers: how the server moves to the proposal."""
