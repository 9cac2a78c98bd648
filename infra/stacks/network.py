"""The network: a VPC of its own or an existing one, with a place for functions and one for servers."""

from constructs import Construct

from infra.constructs.logs import log_group
from infra.constructs.network import Network, imported_network, new_network, open_ranges, open_servers
from infra.environments.model import Environment
from infra.environments.network import ImportedNetwork, NewNetwork
from infra.environments.servers import SelfHosted
from infra.stacks.base import EnvironmentStack


class NetworkStack(EnvironmentStack):
    """`network` has the places. With an existing VPC and existing servers, the stack is empty, and the CDK skips it."""

    def __init__(self, scope: Construct, name: str, *, environment: Environment) -> None:
        super().__init__(scope, name, environment, f"the network ({environment.name})")
        hosted = isinstance(environment.servers, SelfHosted)
        network = environment.network
        if isinstance(network, ImportedNetwork):
            self.network = imported_network(self, "Vpc", **network.model_dump(), servers=hosted)
        elif isinstance(network, NewNetwork):
            self.network = self._new(network, environment)
        else:
            raise TypeError("an environment without a network has no such stack")
        if isinstance(environment.servers, SelfHosted):
            open_servers(self.network.functions, self.network.servers, environment.servers.ports)
        if isinstance(network, NewNetwork):
            self._open(network, environment)

    def _open(self, network: NewNetwork, environment: Environment) -> None:
        """Let functions reach servers that exist, and a collector of traces."""
        endpoints = environment.endpoints
        collector = environment.collector_port
        ports = endpoints.ports | ({collector} if collector else set())
        open_ranges(self.network.functions, endpoints.cidrs or (network.cidr,), ports)

    def _new(self, network: NewNetwork, environment: Environment) -> Network:
        logs = log_group(self, "FlowLogs", environment.log_retention_days, keep=environment.keep_data, key=self._key)
        return new_network(
            self,
            "Vpc",
            cidr=network.cidr,
            logs=logs,
            services=environment.services,
            prefix_list=network.s3_prefix_list_id,
            exits=isinstance(environment.servers, SelfHosted),
        )
