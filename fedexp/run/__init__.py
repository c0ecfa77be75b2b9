"""`fedexp run` and `fedexp resume`: one run and its folder."""
