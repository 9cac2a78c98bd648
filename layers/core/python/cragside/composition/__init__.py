"""The parts of the container, and the functions of adapters that commands use without one."""
