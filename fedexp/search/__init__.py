"""`fedexp search`: hyperparameters chosen by validation accuracy, with Optuna, every method on the same budget."""
