"""EMNIST Digits: 240,000 + 40,000 handwritten digits of 28x28 grey pixels, balanced.

Cohen, Afshar, Tapson, van Schaik, "EMNIST: an extension of MNIST to handwritten letters", 2017,
arXiv:1702.05373. Files in torchvision's layout, below `EMNIST/raw/`, compressed or not. They hold each image
transposed, which is undone here. A checksum is published only for the whole archive (`gzip.zip`): it is compared at the
download; the single files are checked by their sizes, headers and gzip's own CRC-32.
"""

from dataclasses import replace

from fedexp.data import vision
from fedexp.parts.dataset.torchvision import ImageCollection


class EmnistDigits(ImageCollection):
    """Reads the published files of EMNIST Digits."""

    @property
    def collection(self) -> vision.Collection:
        collection = vision.COLLECTIONS["EMNIST", "digits"]
        return replace(collection, option="emnist_digits", class_names=tuple("0123456789"))
