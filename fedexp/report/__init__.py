"""`fedexp report`: what people look at, made from the files of a run folder."""
