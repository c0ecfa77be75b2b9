"""Server optimizers: how the server moves from its model to the proposal."""
