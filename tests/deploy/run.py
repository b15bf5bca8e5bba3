"""The files below `deploy/` for a server of an organisation, tried with the programs that read them, without containers.

    python -m tests.deploy.run

The command of `compose.yaml` starts a replica; nginx serves it over HTTP and TLS; Prometheus reads its metrics, and evaluates
every alert and every query of the Grafana dashboard. Needs the Debian packages nginx-light, prometheus, redis-server,
dnsmasq-base and openssl; without them it says so, and fails only where CI is set.
"""

import glob
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request

import yaml

from tests.action.run import CHECKER, program
from tests.replicas import messages, system
from tests.support import packages, programs

PROGRAMS = {**system.PROGRAMS, "prometheus": "prometheus", "promtool": "prometheus", "openssl": "openssl"}
KUBERNETES = ("kubernetes", "kubernetes-validate==1.37.0")  # with the schemas of this release
DASHBOARD = os.path.join(system.DEPLOY, "grafana", "dashboards", "tmkb.json")
TOKEN = "a token of the tests"
SINCE = "rate(tmkb_requests_total[5m]) > 0"  # has values when a replica was read twice
CALL = messages.call("tmkb_query", context="background job processing")


class Composed(system.System):
    """Replicas that the command of `compose.yaml` starts."""

    def __init__(self):
        self.metrics_port = system.free_port("127.0.0.2", "127.0.0.3")
        super().__init__(replicas=2)

    def _replica(self, number, host, port):
        tokens = os.path.join(self.folder, "tokens")
        with open(tokens, "w", encoding="ascii") as file:
            file.write(hashlib.sha256(TOKEN.encode()).hexdigest() + "\n")
        service = system.compose()["services"]["tmkb"]
        inner = system.free_port(host)
        texts = {
            "$$": "$",
            "exec tmkb": f"exec {sys.executable} -m tmkb",
            ":8322": f":{inner}",
            "0.0.0.0:8321": f"{host}:{port}",
            "0.0.0.0:9464": f"{host}:{self.metrics_port}",
            "redis://valkey:6379": "redis://{}:{}".format(*self.redis.address),
            "/run/secrets/tokens": tokens,
            "${TMKB_HOST:-localhost}": "localhost",
        }
        command = [replaced(word, texts) for word in [*service["entrypoint"], *service["command"]]]
        return self.supervise(f"replica-{number}", command, (host, port), HOSTNAME=host)


def pod(running):
    """Yield whether the command of the Deployment for Kubernetes serves, and ends when its pod ends."""
    host, port, inner, metered = "127.0.0.4", *(system.free_port("127.0.0.4") for _ in range(3))
    folder = os.path.join(system.DEPLOY, "kubernetes")
    access = os.path.join(running.folder, "access.yaml")
    with open(access, "w", encoding="utf-8") as file:
        file.write(yaml.safe_load(packages.read(os.path.join(folder, "configmap.yaml")))["data"]["access.yaml"])
    deployment = yaml.safe_load(packages.read(os.path.join(folder, "deployment.yaml")))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    texts = {
        "0.0.0.0:8321": f"{host}:{port}",
        "$(POD_IP):8322": f"{host}:{inner}",
        "$(POD_IP):9464": f"{host}:{metered}",
        "/etc/tmkb/access.yaml": access,
    }
    command = [sys.executable, "-m", "tmkb", *(replaced(word, texts) for word in container["args"])]
    redis = "redis://{}:{}/1".format(*running.redis.address)
    replica = running.supervise("pod", command, (host, port), TMKB_CLUSTER=redis)
    replica.wait_until_ready()
    probes = [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")]
    statuses = {path: messages.fetch(f"http://{host}:{port}{path}")[0] for path in probes}
    yield "the command of the Deployment is ready", {*statuses.values()} == {200}, str(statuses)
    url = f"http://{host}:{port}/.well-known/oauth-protected-resource/mcp"
    metadata = messages.fetch(urllib.request.Request(url, headers={"Host": "tmkb.example"}))
    yield (
        "clients find its issuer",
        metadata[0] == 200 and "https://login.example/realms/acme" in metadata[2],
        str(metadata),
    )
    replica.process.terminate()
    replica.stopping = True
    unready = messages.until(lambda: messages.fetch(f"http://{host}:{port}/readyz")[0] == 503, 5)
    yield "when it ends, it is not ready, and still serves", unready, replica.read_log()
    yield "then it ends without an error", replica.process.wait(40) == 0, replica.read_log()


def replaced(word, texts):
    """Return a word of a command with texts replaced."""
    for old, new in texts.items():
        word = word.replace(old, new)
    return word


def validation():
    """Yield whether schemas and checkers accept the files."""
    compose = os.path.join(system.DEPLOY, "compose.yaml")
    checker = program(CHECKER, "check-jsonschema")
    done = programs.run([checker, "--builtin-schema", "vendor.compose-spec", compose], packages.ROOT)
    yield "compose.yaml is valid", done.returncode == 0, done.stdout
    done = programs.run(["promtool", "check", "config", os.path.join(system.DEPLOY, "prometheus.yml")], packages.ROOT)
    yield "prometheus.yml and alerts.yml are valid", done.returncode == 0, done.stdout
    manifests = sorted(glob.glob(os.path.join(system.DEPLOY, "kubernetes", "[!k]*.yaml")))
    done = programs.run([program(KUBERNETES, "kubernetes-validate"), "--strict", *manifests], packages.ROOT)
    yield f"{len(manifests)} manifests for Kubernetes are valid", manifests and done.returncode == 0, done.stdout
    mounted = [
        source
        for service in system.compose()["services"].values()
        for source, _, _ in (volume.partition(":") for volume in service.get("volumes", ()))
        if source.startswith("./")
    ]
    absent = [path for path in mounted if not os.path.exists(os.path.join(system.DEPLOY, path))]
    yield "compose.yaml mounts only files that exist", mounted and not absent, str(absent)


def serving(running):
    """Yield whether clients reach the replicas over HTTP and TLS, and whether what is not for them is hidden."""
    address = running.address
    status, _, answer = messages.post(address, messages.initialize(), TOKEN)
    yield "a client with a token is served", status == 200 and "result" in answer, answer
    status, head, answer = messages.post(address, messages.initialize())
    yield "a client without a token is rejected", status == 401 and "www-authenticate" in head, f"{head}{answer}"
    root = address.removesuffix("/mcp")
    hidden = {path: messages.fetch(root + path)[0] for path in ("/metrics", "/livez", "/")}
    yield "nginx hides metrics and the health of replicas", set(hidden.values()) == {404}, str(hidden)
    status, _, answer = messages.fetch(f"{root}/readyz")
    yield "nginx shows whether a replica is ready", status == 200, answer
    for replica in running.replicas:
        replica.stopping = True
        replica.process.kill()
        replica.process.wait()
    status, head, answer = messages.post(address, messages.initialize())
    works = status == 503 and head.get("retry-after") == "1" and json.loads(answer)["error"]["message"]
    yield "without any replica, nginx returns a JSON-RPC error", works, f"{status} {head}{answer}"


def tls(running):
    """Yield whether the TLS variant of nginx.conf serves."""
    key, certificate = (os.path.join(running.folder, name) for name in ("tls.key", "tls.crt"))
    request = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    command = [*request.split(), "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    port = system.free_port("127.0.0.1")
    changes = running.changes | {"/etc/nginx/tls/": f"{running.folder}/", "listen 8443": f"listen 127.0.0.1:{port}"}
    changes = {old: new for old, new in changes.items() if old != "listen 8080"} | {"/nginx.pid": "/tls.pid"}
    nginx = running.start_nginx("tls", changes, ("127.0.0.1", port), tls=True)
    nginx.wait_until_ready()
    context = ssl.create_default_context(cafile=certificate)
    status, head, answer = messages.post(f"https://localhost:{port}/mcp", CALL, TOKEN, context=context)
    nginx.stop()
    yield "TLS works as nginx.conf describes", status == 200 and "strict-transport-security" in head, answer


def observing(running):
    """Yield whether Prometheus finds all metrics that the alerts and the dashboard use."""
    port, folder = system.free_port("127.0.0.1"), running.folder
    with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as file:
        configuration = yaml.safe_load(packages.read(os.path.join(system.DEPLOY, "prometheus.yml")))
        (job,) = configuration["scrape_configs"]
        targets = [f"{replica.address[0]}:{running.metrics_port}" for replica in running.replicas]
        del job["dns_sd_configs"]
        job.update(static_configs=[{"targets": targets}], scrape_interval="1s")
        yaml.safe_dump(configuration, file)
    shutil.copy(os.path.join(system.DEPLOY, "alerts.yml"), folder)
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/prometheus"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    prometheus = running.supervise("prometheus", command, ("127.0.0.1", port))
    prometheus.wait_until_ready()
    api = f"http://127.0.0.1:{port}/api/v1"
    up = messages.until(lambda: use(running) and query(api, "min(up)") == ["1"] and query(api, SINCE))
    yield "Prometheus reads the metrics of all replicas", up, messages.fetch(f"{api}/targets")[2]
    known = {name for replica in targets for name in metrics(f"http://{replica}/metrics")} | {"up"}
    for kind, expressions in (("dashboard", dashboard()), ("alerts", alerts())):
        used = {name: set(re.findall(r"\b(?:tmkb|process)_\w+|\bup\b", name)) for name in expressions}
        unknown = {name: sorted(names - known) for name, names in used.items() if names - known}
        yield f"the {kind} use metrics that exist", used and not unknown, json.dumps(unknown, indent=1)
        wrong = [each for each in expressions if query(api, each) is None]
        yield f"Prometheus evaluates all queries of the {kind}", not wrong, "\n".join(wrong)
    empty = [each for each in dashboard() if not query(api, each) and "tmkb_reloads_total" not in each]
    yield "all queries of the dashboard but those of reloads have a value", not empty, "\n".join(empty)
    prometheus.stop()


def use(running):
    """Make requests of all kinds that the dashboard shows, and return whether they were answered."""
    asked = (CALL, messages.call("tmkb_query", context="a sorting algorithm"), messages.call("no_such_tool"))
    return all("jsonrpc" in messages.post(running.address, message, TOKEN)[2] for message in asked)


def dashboard():
    """Return the queries of the dashboard."""
    panels = json.loads(packages.read(DASHBOARD))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def alerts():
    """Return the expressions of the alerts."""
    groups = yaml.safe_load(packages.read(os.path.join(system.DEPLOY, "alerts.yml")))["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def metrics(url):
    """Return the names of all series on a page of metrics, with those that it announces and that have no series yet."""
    page = messages.fetch(url)[2]
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
    histograms = {f"{name}{end}" for name, kind in types.items() if kind == "histogram" for end in ("_bucket", "_sum")}
    return {*types, *re.findall(r"^(\w+)", page, re.MULTILINE), *histograms}


def query(api, expression):
    """Return the values of an expression; None if Prometheus rejects it."""
    status, _, text = messages.fetch(f"{api}/query?{urllib.parse.urlencode({'query': expression})}")
    if status != 200:
        return None
    return [each["value"][1] for each in json.loads(text)["data"]["result"]]


def checks():
    """Yield the results of all checks."""
    yield from validation()
    with Composed() as running:
        yield from observing(running)
        yield from tls(running)
        yield from pod(running)
        yield from serving(running)


def main():
    """Run the checks; 1 where one fails."""
    if lacking := system.missing(PROGRAMS):
        print(f"The deployment is not tried: that needs {', '.join(lacking)}")
        return 1 if os.environ.get("CI") else 0
    return programs.report(checks())


if __name__ == "__main__":
    sys.exit(main())
