"""Makes pytest take the pretend device for a GPU: `-p pretend_device.plugin`."""

from pretend_device import substitute

substitute()
