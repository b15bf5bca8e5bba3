"""The manifests for Kubernetes and the services of Docker Compose agree with the options, the image and each other."""

import argparse
import glob
import os

import yaml

from deploy import metadata
from tests.support.repository import ROOT, source
from tmkb.cli import serve

FOLDER = os.path.join(ROOT, "deploy", "kubernetes")
FILES = sorted(path for path in glob.glob(os.path.join(FOLDER, "*.yaml")) if "kustomization" not in path)
COMPOSE = yaml.safe_load(source(os.path.join(ROOT, "deploy", "compose.yaml")))["services"]


def manifests(name):
    """Return the objects of a file."""
    return [*yaml.safe_load_all(source(os.path.join(FOLDER, name)))]


def pod(name, number=0):
    """Return the pod that a deployment describes."""
    return manifests(name)[number]["spec"]["template"]["spec"]


def options(words):
    """Return the options of a command `tmkb serve …`. Raises SystemExit for unknown ones."""
    assert words[0] == "serve"
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    return parser.parse_args(words[1:])


def test_the_kustomization_has_all_files_but_the_form_of_the_secret():
    (kustomization,) = manifests("kustomization.yaml")

    assert sorted([*kustomization["resources"], "secret.yaml"]) == [os.path.basename(path) for path in FILES]
    (image,) = kustomization["images"]
    assert image["newName"] == metadata.image().rpartition(":")[0]
    assert not any(manifests("secret.yaml")[0]["stringData"]["state-key"])


def test_a_pod_ends_before_kubernetes_kills_it():
    described = pod("deployment.yaml")
    used = options(described["containers"][0]["args"])

    assert used.drain + used.grace < described["terminationGracePeriodSeconds"]


def test_ports_and_probes_are_those_of_the_command():
    (container,) = pod("deployment.yaml")["containers"]
    used, ports = options(container["args"]), {port["name"]: port["containerPort"] for port in container["ports"]}

    addresses = {"http": used.http, "replicas": used.cluster_address, "metrics": used.metrics}
    assert {name: int(address.rpartition(":")[2]) for name, address in addresses.items()} == ports


def test_no_container_has_more_rights_than_it_needs():
    for described in (pod("deployment.yaml"), pod("valkey.yaml")):
        assert described["securityContext"]["runAsNonRoot"]
        assert not described["automountServiceAccountToken"]
        for container in described["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


def test_compose_limits_its_services_likewise():
    for service in COMPOSE.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert options(COMPOSE["tmkb"]["command"]).auth_tokens == "/run/secrets/tokens"


def test_valkey_has_the_same_settings_everywhere():
    (container,) = pod("valkey.yaml")["containers"]

    assert container["args"] == COMPOSE["valkey"]["command"]
    assert container["image"] == COMPOSE["valkey"]["image"]
