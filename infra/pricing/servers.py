"""Costs of instances and their volumes."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.pricing.month import HOURS, Charge, Month
from infra.pricing.templates import Resource


def group_charges(group: Resource, _: Month) -> Iterator[Charge]:
    """The instances of a group, from the template that it starts them from."""
    number = float(group.properties.get("DesiredCapacity") or group.properties["MaxSize"])
    for template in group.beside("AWS::EC2::LaunchTemplate"):
        if group.refers_to(template):
            yield from _running(template.properties["LaunchTemplateData"], number)


def volume_charges(volume: Resource, _: Month) -> Iterator[Charge]:
    """A volume."""
    yield _volume(volume.properties)


def policy_charges(policy: Resource, month: Month) -> Iterator[Charge]:
    """Snapshots of the volumes in the lifecycle policy's template."""
    size = sum(float(volume.properties["Size"]) for volume in policy.beside("AWS::EC2::Volume"))
    yield Charge("snapshots of volumes", "snapshot", size * month.usage["snapshot_share"])


def _running(properties: Mapping[str, Any], number: float) -> Iterator[Charge]:
    kind = properties["InstanceType"]
    yield Charge(f"{kind}, all the time", kind, HOURS * number)
    if any(found.get("AssociatePublicIpAddress") for found in properties.get("NetworkInterfaces", [])):
        yield Charge("public addresses", "public-address", HOURS * number)
    for device in properties.get("BlockDeviceMappings", []):
        if "Ebs" in device:
            charge = _volume(device["Ebs"])
            yield Charge(charge.what, charge.price, charge.quantity * number)


def _volume(properties: Mapping[str, Any]) -> Charge:
    size = float(properties.get("Size") or properties["VolumeSize"])
    return Charge("volumes", f"volume-{properties['VolumeType']}", size)
