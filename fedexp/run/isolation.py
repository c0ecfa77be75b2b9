"""Restores what a run changes in its process: a command ends with its run, but a script goes on."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.version import VersionBase
from omegaconf.basecontainer import BaseContainer
from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

from fedexp.process import logs

_REPLACED_SINGLETONS = (GlobalHydra, HydraConfig, VersionBase)


@contextmanager
def isolate_process() -> Iterator[None]:
    """Runs the block with a new Hydra and one computing thread, and restores the process's state at the end."""
    with _own_hydra(), _one_thread(), _own_kernels(), _own_tensors(), _own_process(), logs.restore_logging():
        yield


@contextmanager
def _own_hydra() -> Iterator[None]:
    """Gives the block an empty Hydra, since the calling application may be in the middle of its own Hydra job."""
    instances, resolvers = Singleton._instances, BaseContainer._resolvers
    Singleton._instances = {kind: instance for kind, instance in instances.items() if kind not in _REPLACED_SINGLETONS}
    BaseContainer._resolvers = dict(resolvers)
    try:
        yield
    finally:
        Singleton._instances, BaseContainer._resolvers = instances, resolvers


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limits the block to one computing thread, as on the command line: another order of sums gives other bytes."""
    threads = torch.get_num_threads()
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _own_kernels() -> Iterator[None]:
    """Restores which kernels PyTorch may choose, which a run on a GPU changes."""
    debug_mode = torch.get_deterministic_debug_mode()
    tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    benchmark = torch.backends.cudnn.benchmark
    filled: bool = torch.utils.deterministic.fill_uninitialized_memory  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = benchmark
        torch.set_deterministic_debug_mode(debug_mode)
        torch.utils.deterministic.fill_uninitialized_memory = filled  # pyright: ignore[reportAttributeAccessIssue]


@contextmanager
def _own_tensors() -> Iterator[None]:
    """Makes tensors in the block those of a new process: of float32, on the CPU, with gradients."""
    dtype = torch.get_default_dtype()
    with torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextmanager
def _own_process() -> Iterator[None]:
    """Restores the environment, and the hook in which PyTorch's process groups put their ranks into tracebacks."""
    before, hook = dict(os.environ), sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = hook
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
