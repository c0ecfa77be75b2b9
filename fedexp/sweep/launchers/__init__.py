"""Where the points of a sweep are executed: in this process, or by joblib, submitit or Ray."""
