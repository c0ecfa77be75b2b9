"""What stands behind each first word of the command line: the words read, the work handed on."""
