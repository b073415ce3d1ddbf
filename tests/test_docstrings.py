"""Docstrings of everything public follow numpydoc, by numpydoc's own validation."""

import importlib
import inspect
import pkgutil

import pytest

import tartree

#: What has to hold: a docstring with a summary, and sections that name every parameter and the value returned.
CHECKS = {"GL01", "GL08", "SS01", "SS03", "SS06", "PR01", "PR02", "PR03", "PR04", "RT01", "YD01"}
#: Parts of scikit-learn's interface that it documents itself.
INHERITED = {"set_params", "get_params", "get_metadata_routing", "fit_transform", "set_output"}


def public_objects():
    """Return the classes and functions that a package lists in `__all__`, by name."""
    objects = {}  # protocols have no parameters of their own
    packages = [tartree.__name__] + [m.name for m in pkgutil.walk_packages(tartree.__path__, "tartree.") if m.ispkg]
    for package in sorted([*packages, "tartree.losses", "tartree.persist"]):
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            is_protocol = getattr(value, "_is_protocol", False)
            if (inspect.isclass(value) or inspect.isfunction(value)) and not is_protocol:
                objects.setdefault(f"{value.__module__}.{value.__qualname__}", value)
    return objects


def documented_names():
    """Return the public objects, and public methods that their classes define, as numpydoc finds them."""
    for name, value in public_objects().items():
        yield name
        if not inspect.isclass(value):
            continue
        for method, member in vars(value).items():
            is_callable = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
            if is_callable and not method.startswith("_") and method not in INHERITED and _has_docstring(member):
                yield f"{name}.{method}"


def _has_docstring(member):
    """Return whether a method has a docstring; overrides of a documented method need none."""
    return bool(inspect.unwrap(getattr(member, "__func__", member)).__doc__)


def test_public_objects_have_complete_sections():
    validate = pytest.importorskip("numpydoc.validate").validate
    problems = [
        f"{name}: {code} {message}"
        for name in documented_names()
        for code, message in validate(name)["errors"]
        if code in CHECKS
    ]
    assert not problems, "\n".join(problems)
