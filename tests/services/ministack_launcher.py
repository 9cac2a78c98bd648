"""Starts ministack, closer to AWS where it differs. Runs on ministack's own Python.

- ministack unpacks each layer into a folder of its own and puts the `python/` of each on the path, but merges none into
  /opt, so that a variable such as RAG_HOME=/opt/knowledge leads nowhere. Here, a variable that points below /opt points
  into the layer that has it.
- A layer is unpacked once, and each environment of a function has a link to it, as all have the same /opt on AWS.
- `Ref` of a secret is its ARN, as on AWS, and not its name. Drift is looked for under its name, where it is kept.
- A secret that CloudFormation generates has the characters that the template asks for. Here it would have any.
- A log group that is gone stays away. Here a function that still runs would bring it back, which takes
  `logs:CreateLogGroup` on AWS.
- An alarm on an expression of several metrics is accepted, and stays silent.
- Types of resources that it does not know are accepted where nothing of the tests depends on them.
- Policies of IAM are in force while the file ENFORCED exists. The file CALLS has a line for each call that was checked
  then: the caller's ARN and the action.
"""

import hashlib
import json
import os
import tempfile
import threading
import types
import zipfile
from pathlib import Path

from ministack import app
from ministack.core import iam_evaluator, lambda_runtime
from ministack.core.responses import get_account_id
from ministack.services import cloudwatch_logs, lambda_svc, secretsmanager
from ministack.services.cloudformation import drift, provisioners

_READ_ENVIRONMENT = "    os.environ.update(env)\n"
_FIND_OPT = """
    for _name, _value in env.items():
        if _value.startswith("/opt/"):
            for _layer in os.environ.get("_LAMBDA_LAYERS_DIRS", "").split(os.pathsep):
                if os.path.exists(os.path.join(_layer, _value[5:])):
                    os.environ[_name] = os.path.join(_layer, _value[5:])
"""
_SECRET = "AWS::SecretsManager::Secret"
_ALARM = "AWS::CloudWatch::Alarm"
_SILENT = {"Namespace": "none", "MetricName": "expression", "Statistic": "Sum", "Period": 300}
_ACCEPTED = ("AWS::EC2::FlowLog", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress")


class _Enforced:
    """True while the file is there."""

    def __init__(self, file):
        self._file = Path(file)

    def __bool__(self):
        return self._file.exists()


def _find_opt():
    worker = lambda_runtime._PYTHON_WORKER_SCRIPT
    if worker.count(_READ_ENVIRONMENT) != 1:
        raise SystemExit("This ministack starts its workers differently: ministack_launcher.py does not fit it.")
    lambda_runtime._PYTHON_WORKER_SCRIPT = worker.replace(_READ_ENVIRONMENT, _READ_ENVIRONMENT + _FIND_OPT)


class _Shared(zipfile.ZipFile):
    """A layer's archive is unpacked at its first environment. The others get a link."""

    _one = threading.Lock()

    def extractall(self, path=None, *given, **named):
        if not os.path.basename(path or "").startswith("layer_"):
            super().extractall(path, *given, **named)
            return
        with open(self.filename, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        shared = Path(tempfile.gettempdir(), "layers", digest)
        with self._one:
            if not shared.exists():
                new = shared.with_suffix(".new")
                super().extractall(new)
                new.rename(shared)
        os.rmdir(path)
        os.symlink(shared, path)


def _share_layers():
    lambda_runtime.zipfile = types.SimpleNamespace(**vars(zipfile) | {"ZipFile": _Shared})


def _refer_to_secrets_by_arn():
    handlers = provisioners._RESOURCE_HANDLERS[_SECRET]
    create, update, delete = handlers["create"], handlers["update"], handlers["delete"]

    def name_of(arn):
        return arn.partition(":secret:")[2].rpartition("-")[0] or arn

    def created(*given):
        _, attributes = create(*given)
        return attributes["Arn"], attributes

    def updated(physical_id, *given, **named):
        found = update(name_of(physical_id), *given, **named)
        return (physical_id, *found[1:]) if isinstance(found, tuple) else found

    def deleted(physical_id, *given, **named):
        return delete(name_of(physical_id), *given, **named)

    read, compared = drift._DRIFT_READERS[_SECRET]

    def current(physical_id, props):
        return read(name_of(physical_id), props)

    handlers |= {"create": created, "update": updated, "delete": deleted}
    drift._DRIFT_READERS[_SECRET] = (current, compared)


def _generate_secrets_as_asked():
    """Have templates' secrets made as `GetRandomPassword` makes them, which knows all options."""
    text_of = provisioners._sm_secret_string

    def text(props):
        asked = props.get("GenerateSecretString")
        if not asked or props.get("SecretString") or "SecretStringTemplate" in asked:
            return text_of(props)
        _, _, body = secretsmanager._get_random_password(asked)
        return json.loads(body)["RandomPassword"]

    provisioners._sm_secret_string = text


def _keep_deleted_log_groups_away():
    emit = lambda_svc._emit_lambda_logs

    def emitted(func, *given, **named):
        group = ((func.get("config") or func).get("LoggingConfig") or {}).get("LogGroup")
        if group is None or group in cloudwatch_logs._log_groups:
            emit(func, *given, **named)

    lambda_svc._emit_lambda_logs = emitted


def _accept_expressions():
    handlers = provisioners._RESOURCE_HANDLERS[_ALARM]
    create = handlers["create"]

    def created(logical_id, props, stack_name):
        if "Metrics" in props:
            props = {name: value for name, value in props.items() if name != "Metrics"} | _SILENT
        return create(logical_id, props, stack_name)

    handlers["create"] = created


def _accept_types():
    def created(logical_id, _props, stack_name):
        return f"{stack_name}-{logical_id}", {}

    def deleted(_physical_id, _props):
        pass

    for kind in _ACCEPTED:
        provisioners._RESOURCE_HANDLERS.setdefault(kind, {"create": created, "delete": deleted})


def _enforce_and_note(calls):
    enforce = iam_evaluator.enforce

    def noted(access_key_id, iam_action, *given, **named):
        if iam_action.startswith("sqs:"):
            iam_action = iam_action.removesuffix("Batch")  # IAM knows no actions for batches
        principal = iam_evaluator.resolve_principal(access_key_id or "", get_account_id())
        with calls.open("a") as file:
            file.write(f"{getattr(principal, 'arn', 'nobody')} {iam_action}\n")
        return enforce(access_key_id, iam_action, *given, **named)

    iam_evaluator.enforce = noted
    # Policies that ask for TLS take every request for one with it: the emulator has none.
    app.pin_request_origin = lambda address, _: iam_evaluator.pin_request_origin(address, True)
    app.AUTH = _Enforced(os.environ["ENFORCED"])


if __name__ == "__main__":
    _find_opt()
    _share_layers()
    _refer_to_secrets_by_arn()
    _generate_secrets_as_asked()
    _keep_deleted_log_groups_away()
    _accept_expressions()
    _accept_types()
    _enforce_and_note(Path(os.environ["CALLS"]))
    app.main()
