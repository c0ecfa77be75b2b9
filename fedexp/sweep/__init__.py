"""`fedexp run -m`: the points of a sweep, and where they are executed."""
