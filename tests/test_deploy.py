"""The files of deploy/: they parse, name each other rightly, and give nothing away."""

import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
SERVICES = ("code", "webserver", "daemon")


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compose() -> Any:
    return read("compose.yaml")


def test_only_the_webserver_is_published_and_on_loopback_only(compose: Any) -> None:
    published = {name: service.get("ports", []) for name, service in compose["services"].items()}
    assert published == {
        "postgres": [],
        "code": [],
        "webserver": ["127.0.0.1:3000:3000"],
        "daemon": [],
    }


def test_every_service_is_restarted_and_says_whether_it_is_well(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"], name


def test_services_share_an_image_without_privileges(compose: Any) -> None:
    for name in SERVICES:
        service = compose["services"][name]
        assert service["image"] == compose["services"]["code"]["image"]
        assert service["cap_drop"] == ["ALL"]
        assert service["command"][0] in ("dagster", "python", "dagster-daemon")
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER judgeline$", dockerfile, re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    """Return the versions that a file of requirements pins, by normal names."""
    found = re.findall(
        r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)",
        (ROOT / name).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_the_image_installs_tested_versions_by_their_hashes() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"pip install (.*)", dockerfile)
    assert installs == [
        "--require-hashes -r requirements.lock",
        "--no-deps --no-build-isolation -e .",
    ]
    locked, tested = pins("requirements.lock"), pins("constraints.txt")
    builds = {"editables", "hatchling", "setuptools", "trove-classifiers"}  # no part of any closure
    assert locked.keys() - builds == locked.keys() & tested.keys()
    differs = {name: one for name, one in locked.items() if tested.get(name, one) != one}
    assert differs == {}
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for entry in re.split(r"\n(?=\w)", text.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry.splitlines()[0]
    assert "://" not in text


def test_the_lock_has_what_the_image_needs() -> None:
    """Each package that the extras of the image name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [
        *project["dependencies"],
        *chain(*map(extras.get, ("judges", "app", "postgres", "kubernetes"))),
    ]
    names = {re.match(r"[\w.-]+", one)[0] for one in needed} - {"judgeline"}
    assert names <= pins("requirements.lock").keys()


def test_the_host_of_the_runs_keeps_its_name(compose: Any) -> None:
    assert compose["services"]["code"]["hostname"] == "code"


def test_the_workspace_finds_the_code_location_where_the_file_puts_it(compose: Any) -> None:
    (entry,) = read("workspace.yaml")["load_from"]
    environment = compose["services"]["daemon"]["environment"]
    host, port = (environment[entry["grpc_server"][key]["env"]] for key in ("host", "port"))
    assert host in compose["services"]
    assert port in compose["services"][host]["command"]


def test_the_instance_has_every_variable_that_its_file_names(compose: Any) -> None:
    named = set(re.findall(r"env: (\w+)", (DEPLOY / "dagster.postgres.yaml").read_text()))
    for name in SERVICES:
        assert named <= set(compose["services"][name]["environment"]), name


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    kept = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    ]
    for line in (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[:1] != ["COPY"] or words[1].startswith("--from"):
            continue
        for source in words[1:-1]:
            assert (ROOT / source).exists(), source
            assert source.split("/")[0] in kept, source


def test_nothing_holds_a_secret_and_telemetry_is_off() -> None:
    helm = read("helm-values.yaml")
    assert helm["telemetry"] == {"enabled": False}
    assert "postgresqlPassword" not in helm["postgresql"]
    assert helm["ingress"] == {"enabled": False}
    compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    for line in compose.splitlines():
        if re.search(r"(PASSWORD|API_KEY)\w*:", line):
            assert "${" in line, line


def test_what_is_ones_own_has_a_place_in_compose_and_none_in_the_image(compose: Any) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (app,) = set(re.findall("^WORKDIR (.*)$", dockerfile, re.MULTILINE))
    for name in SERVICES:
        home, config, data = compose["services"][name]["volumes"]
        assert home == "home:/var/lib/judgeline"
        assert config == f"../config:{app}/config:ro"
        assert (data["type"], data["target"], data["read_only"]) == ("bind", f"{app}/data", True)
        assert data["source"] == "${JUDGELINE_DATA:-../data}"
    assert compose["services"]["code"]["env_file"] == [{"path": "keys.env", "required": False}]
    # A value of `environment`, be it empty, would hide the one of the file.
    assert "API_KEY" not in " ".join(compose["services"]["code"]["environment"])
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for own, kept in (("config/local", "!config"), ("deploy/keys.env", "!deploy")):
        assert ignored.index(own) > ignored.index(kept)
    named = ["deploy/keys.env", "config/local/judges.yaml", "data/mine.parquet"]
    asked = subprocess.run(
        ["git", "check-ignore", *named], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert asked.stdout.split() == (named if (ROOT / ".git").exists() else [])


def test_what_is_ones_own_reaches_every_pod_that_asks() -> None:
    helm = read("helm-values.yaml")
    (deployment,) = helm["dagster-user-deployments"]["deployments"]
    volumes = {one["name"]: one for one in deployment["volumes"]}
    assert volumes["config"]["configMap"] == {"name": "judgeline-config", "optional": True}
    mounts = {one["name"]: one["mountPath"] for one in deployment["volumeMounts"]}
    assert mounts == {"home": deployment["env"]["JUDGELINE_HOME"], "config": "/app/config/local"}
    assert deployment["env"]["JUDGELINE_DATA"] == f"{mounts['home']}/data"
    assert deployment["envSecrets"] == [{"name": "judgeline-keys"}]
    assert deployment["resources"]["limits"] == {"memory": "4Gi"}
    webserver = helm["dagsterWebserver"]  # which shows the reports
    assert webserver["volumes"] == [volumes["home"]]
    (mount,) = webserver["volumeMounts"]
    assert mount == {"name": "home", "mountPath": mounts["home"], "readOnly": True}


def test_the_page_names_every_place_of_ones_own() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for name in ("config/local", "deploy/keys.env", "judgeline-config", "judgeline-keys"):
        assert f"`{name}`" in page, name
    for file in ("compose.yaml", "helm-values.yaml"):
        text = (DEPLOY / file).read_text(encoding="utf-8")
        assert "keys.env" in text, file
        assert "config/local" in text, file
    assert "`/var/lib/judgeline/data`" in page
    assert "location: ${JUDGELINE_DATA:-data}/" in page


def test_base_images_can_be_pinned_by_their_digest(compose: Any) -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", dockerfile, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    for name in SERVICES:
        arguments = compose["services"][name]["build"]["args"]
        assert arguments == {"PYTHON_IMAGE": f"${{PYTHON_IMAGE:-{base}}}"}
    postgres = compose["services"]["postgres"]["image"]
    assert re.fullmatch(r"\$\{POSTGRES_IMAGE:-postgres:\d+-alpine\}", postgres)
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert f"PYTHON_IMAGE={base}@sha256:..." in page


def test_a_cap_on_runs_reaches_the_processes_that_ask(compose: Any) -> None:
    """Runs are processes of `code`, in a cluster pods with its environment."""
    environment = compose["services"]["code"]["environment"]
    for name in ("JUDGELINE_BUDGET", "JUDGELINE_WEBHOOK", "JUDGELINE_WEBHOOK_SECRET"):
        assert environment[name] == f"${{{name}-}}"
    (deployment,) = read("helm-values.yaml")["dagster-user-deployments"]["deployments"]
    assert deployment["env"]["JUDGELINE_BUDGET"] == ""
    assert deployment["includeConfigInLaunchedRuns"] == {"enabled": True}


def test_every_webserver_is_the_guarded_one(compose: Any) -> None:
    """The chart has no other command than `dagster-webserver`: the image's own is ours."""
    service = compose["services"]["webserver"]
    assert service["command"][:3] == ["python", "-m", "pipelines.instance.webserver"]
    assert service["environment"]["JUDGELINE_ALLOWED_HOSTS"] == "${JUDGELINE_ALLOWED_HOSTS-}"
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    installed, replaced = dockerfile.index("pip install"), dockerfile.index("RUN printf")
    script = 'exec /opt/venv/bin/python -m pipelines.instance.webserver "$@"'
    assert script in dockerfile[replaced:].partition("> /opt/venv/bin/dagster-webserver\n")[0]
    assert installed < replaced
    for path in DEPLOY.iterdir():
        commands = re.findall(r"\bdagster[ -](?:webserver|dev)\b", path.read_text(encoding="utf-8"))
        assert path.name in ("Dockerfile", "helm-values.yaml") or commands == []


def test_the_guard_lets_the_probes_of_a_cluster_in() -> None:
    """They come with the address of a pod for a name, unless they are given another."""
    helm = read("helm-values.yaml")
    (deployment,) = helm["dagster-user-deployments"]["deployments"]
    webserver = helm["dagsterWebserver"]
    assert webserver["image"] == deployment["image"]
    probe, port = webserver["readinessProbe"]["httpGet"], webserver["service"]["port"]
    assert probe["port"] == port
    assert probe["httpHeaders"] == [{"name": "Host", "value": f"localhost:{port}"}]
    assert {entry["name"] for entry in webserver["env"]} == {"JUDGELINE_ALLOWED_HOSTS"}


def test_a_failed_tick_of_a_schedule_is_tried_again_everywhere() -> None:
    """A weekly tick that meets half a file would else lose the week."""
    retries = [
        yaml.safe_load(file.read_text(encoding="utf-8"))["scheduler"]["config"]["max_tick_retries"]
        for file in (ROOT / "dagster.yaml", DEPLOY / "dagster.postgres.yaml")
    ]
    helm = read("helm-values.yaml")["scheduler"]["config"]["daemonScheduler"]["maxTickRetries"]
    assert [*retries, helm] == [60, 60, 60]
