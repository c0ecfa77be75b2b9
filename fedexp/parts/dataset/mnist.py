"""MNIST: 60,000 + 10,000 handwritten digits of 28x28 grey pixels.

LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 86(11),
1998. The four original archives, or the same files decompressed, below `MNIST/raw/` (torchvision's layout).
"""

from dataclasses import replace
from typing import ClassVar

from fedexp.data import vision
from fedexp.parts.dataset.normalising import Published
from fedexp.parts.dataset.torchvision import ImageCollection

DIGESTS = {
    "MNIST/raw/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "MNIST/raw/train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "MNIST/raw/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "MNIST/raw/train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "MNIST/raw/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "MNIST/raw/t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ad",
    "MNIST/raw/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "MNIST/raw/t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


class Mnist(ImageCollection):
    """Reads the published files of MNIST."""

    published: ClassVar[Published] = {"standard": ((0.1307,), (0.3081,)), "per_channel": ((0.1307,), (0.3081,))}

    @property
    def collection(self) -> vision.Collection:
        collection = vision.COLLECTIONS["MNIST", None]
        return replace(collection, option="mnist", digests=DIGESTS, class_names=tuple("0123456789"))
