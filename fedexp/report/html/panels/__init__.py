"""The parts of the page, one file each; a part without data is None and left out."""
