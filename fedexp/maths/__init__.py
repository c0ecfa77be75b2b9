"""Pure functions of arrays: no files, no config, no clock."""
