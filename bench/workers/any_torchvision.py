"""Import before diffusers. Its Cosmos classes import torchvision for a resize that is pure Python; this lets any wheel
be imported, also one whose compiled operators were built for another torch and are therefore absent."""
import unittest.mock

import torch

_register_fake = torch.library.register_fake


def _register_fake_if_present(op, *args, **kwargs):
    register = _register_fake(op, *args, **kwargs)

    def decorate(function):
        try:
            return register(function)
        except RuntimeError:  # "operator torchvision::nms does not exist"
            return function

    return decorate


with unittest.mock.patch.object(torch.library, "register_fake", _register_fake_if_present):
    import torchvision  # noqa: F401
