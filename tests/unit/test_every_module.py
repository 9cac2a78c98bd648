from importlib import import_module
from pkgutil import walk_packages

import cragside

# Plugins import the programs that load them, which are not installed here.
PLUGINS = "cragside.plugins."


def test_each_module_of_the_package_can_be_imported() -> None:
    names = [found.name for found in walk_packages(cragside.__path__, "cragside.")]
    names = [name for name in names if not name.startswith(PLUGINS)]
    assert len(names) > 100
    for name in names:
        import_module(name)
