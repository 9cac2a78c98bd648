"""Starts ministack, with layers in the place where Lambda has them. Runs on ministack's own Python.

ministack unpacks each layer into a folder of its own and puts the `python/` of each on the path, but merges none into
/opt, so that a variable such as RAG_HOME=/opt/knowledge leads nowhere. Here, a variable that points below /opt points
into the layer that has it.
"""

from ministack.app import main
from ministack.core import lambda_runtime

_READ_ENVIRONMENT = "    os.environ.update(env)\n"
_FIND_OPT = """
    for _name, _value in env.items():
        if _value.startswith("/opt/"):
            for _layer in os.environ.get("_LAMBDA_LAYERS_DIRS", "").split(os.pathsep):
                if os.path.exists(os.path.join(_layer, _value[5:])):
                    os.environ[_name] = os.path.join(_layer, _value[5:])
"""

if __name__ == "__main__":
    worker = lambda_runtime._PYTHON_WORKER_SCRIPT
    if worker.count(_READ_ENVIRONMENT) != 1:
        raise SystemExit("This ministack starts its workers differently: ministack_launcher.py does not fit it.")
    lambda_runtime._PYTHON_WORKER_SCRIPT = worker.replace(_READ_ENVIRONMENT, _READ_ENVIRONMENT + _FIND_OPT)
    main()
