"""The process's share of a compilation: caches, threads, and where a compiler is looked up."""

import functools
import os

import torch

from coil import _coil


def cache_folder():
    given = os.environ.get("COIL_CACHE_DIR")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "coil")


@functools.lru_cache(maxsize=None)
def _session(path, folder, threads):
    return _coil.Session(path, folder, threads)


def session(options):
    """The session for these options. Programs with the same number of threads share a pool."""
    threads = int(options.get("threads", "0")) or torch.get_num_threads()
    folder = options.get("cache_dir") or cache_folder()
    return _session(os.environ.get("PATH", ""), folder, threads)
