#!/usr/bin/env python3
"""Packages one binary of stackline: tarball, Python wheel, Debian package, container image, list of components.

usage: packaging/package.py BINARY ARCHITECTURE DIRECTORY
ARCHITECTURE is x86_64 or aarch64. BINARY has to run on this machine, as it writes manual pages and completions; for
another architecture, set STACKLINE_NATIVE to a binary that does. The same binary gives the same bytes: times are
SOURCE_DATE_EPOCH or the commit's. Needs Python 3.9 or newer, git and cargo, but no network.
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))

import build_backend

NAME = build_backend.NAME
SUMMARY = build_backend.SUMMARY
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
OCI = {"x86_64": "amd64", "aarch64": "arm64"}
# What a release may have: a program is downloaded more often than it is built.
MOST_BYTES = 30_000_000
SHELLS = {"bash": "stackline", "zsh": "_stackline", "fish": "stackline.fish"}


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def version():
    manifest = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^version = "(.+)"$', manifest, re.M).group(1)


def epoch():
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or output("git", "log", "-1", "--format=%ct"))


def components(target):
    """The crates in the program of a target, without those that only build or test it."""
    metadata = json.loads(
        output("cargo", "metadata", "--format-version=1", "--locked", "--offline",
               "--filter-platform", target)
    )
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] == NAME]
    found = set()
    while todo:
        id = todo.pop()
        if id in found:
            continue
        found.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return sorted((packages[id] for id in found), key=lambda p: (p["name"], p["version"]))


def licences(packages):
    """The licence of each component, and the texts that came with it."""
    heads, texts = [], {}
    for package in packages:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        heads.append(f"{name}: {package['license'] or 'see the text'}\n")
        directory = pathlib.Path(package["manifest_path"]).parent
        for path in sorted(directory.iterdir()):
            if path.is_file() and re.match(r"(?i)(licen[cs]e|copying|notice|unlicense)", path.name):
                text = path.read_text(errors="replace").strip()
                texts.setdefault(text, []).append(f"{name} ({path.name})")
    bodies = (f"\n--- {', '.join(owners)}\n\n{text}\n" for text, owners in texts.items())
    return "".join([*heads, *bodies]).encode()


def bill_of_materials(packages, digest):
    """The components as CycloneDX 1.5."""
    def component(package):
        entry = {
            "type": "library",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:cargo/{package['name']}@{package['version']}",
        }
        if package["license"]:
            entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        return entry

    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": NAME,
                "version": version(),
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": [component(package) for package in packages],
    }
    return (json.dumps(bill, indent=1) + "\n").encode()


def contents(binary, native, target):
    """What is installed, by its path below the prefix, with its mode."""
    packages = components(target)
    program = binary.read_bytes()
    files = {
        "bin/stackline": (program, 0o755),
        "share/doc/stackline/README.md": ((ROOT / "README.md").read_bytes(), 0o644),
        "share/doc/stackline/schema.json": ((ROOT / "docs/reference/schema.json").read_bytes(), 0o644),
        "share/doc/stackline/LICENSE-MIT": ((ROOT / "LICENSE-MIT").read_bytes(), 0o644),
        "share/doc/stackline/LICENSE-APACHE": ((ROOT / "LICENSE-APACHE").read_bytes(), 0o644),
        "share/doc/stackline/LICENSES-OF-COMPONENTS.txt": (licences(packages), 0o644),
        "share/doc/stackline/components.cdx.json": (
            bill_of_materials(packages, hashlib.sha256(program).hexdigest()), 0o644),
    }
    for folder in ("docs", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file():
                kept = path.relative_to(ROOT).as_posix()
                files[f"share/doc/stackline/{kept}"] = (path.read_bytes(), 0o644)
    for shell, name in SHELLS.items():
        script = output(str(native), "completions", shell)
        files[f"share/stackline/completions/{name}"] = (script, 0o644)
    for unit in sorted((ROOT / "packaging").glob("*.service")):
        files[f"share/stackline/{unit.name}"] = (unit.read_bytes(), 0o644)
    dashboard = ROOT / "packaging/grafana/stackline.json"
    files["share/stackline/grafana/stackline.json"] = (dashboard.read_bytes(), 0o644)
    with tempfile.TemporaryDirectory() as directory:
        output(str(native), "man", directory)
        for page in sorted(pathlib.Path(directory).iterdir()):
            files[f"share/man/man1/{page.name}.gz"] = (compressed(page.read_bytes()), 0o644)
    return files


def compressed(data):
    return gzip.compress(data, 9, mtime=0)


def tar(files, prefix, when):
    """An archive of these files with their directories, the same for the same files."""
    directories = set()
    for path in files:
        directories.update(str(parent) for parent in pathlib.PurePosixPath(prefix + path).parents)
    # A directory stands before what is in it, by the same spelling: dpkg makes none that it has not met.
    spelled = "./" if prefix.startswith("./") else ""
    entries = {spelled + directory: (None, 0o755) for directory in directories - {".", "/"}}
    entries.update({prefix + path: entry for path, entry in files.items()})
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, (data, mode) in sorted(entries.items()):
            entry = tarfile.TarInfo(path)
            entry.mode, entry.mtime = mode, when
            entry.uname = entry.gname = "root"
            if data is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return written.getvalue()


def wheel(program, architecture, when, target):
    """A wheel of the Python package with the program as its one script."""
    if build_backend.version() != version():
        sys.exit(f"error: python/stackline/_version.py says {build_backend.version()}, Cargo.toml {version()}")
    tags = [f"manylinux_2_17_{architecture}", f"manylinux2014_{architecture}"]
    if "musl" in target:
        tags.append(f"musllinux_1_1_{architecture}")
    files = {f"{NAME}-{version()}.data/scripts/stackline": program, **build_backend.package_files()}
    readme = (ROOT / "README.md").read_text()
    return build_backend.wheel_name(tags), build_backend.wheel(files, tags, when, readme)


def debian(files, architecture, when):
    """A Debian package: `ar` of two archives, deb(5)."""
    size = sum(len(data) for data, _ in files.values()) // 1024 + 1
    control = (
        f"Package: {NAME}\nVersion: {version()}\nArchitecture: {DEBIAN[architecture]}\n"
        f"Installed-Size: {size}\nSection: net\nPriority: optional\n"
        "Maintainer: stackline <stackline@localhost>\n"
        f"Description: {SUMMARY}\n"
        " Traces unmodified programs, measures, emulates and simulates networks, and\n"
        " reports what limits a run.\n").encode()
    moved = {
        "share/stackline/completions/stackline": "share/bash-completion/completions/stackline",
        "share/stackline/completions/_stackline": "share/zsh/vendor-completions/_stackline",
        "share/stackline/completions/stackline.fish": "share/fish/vendor_completions.d/stackline.fish",
    } | {
        f"share/stackline/{unit.name}": f"lib/systemd/system/{unit.name}"
        for unit in (ROOT / "packaging").glob("*.service")
    }
    installed = {moved.get(path, path): entry for path, entry in files.items()}
    sums = "".join(
        f"{hashlib.md5(data).hexdigest()}  usr/{path}\n" for path, (data, _) in sorted(installed.items()))
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", compressed(tar(
            {"control": (control, 0o644), "md5sums": (sums.encode(), 0o644)}, "./", when))),
        ("data.tar.gz", compressed(tar(installed, "./usr/", when))),
    ]
    archive = b"!<arch>\n"
    for name, data in members:
        head = f"{name:<16}{when:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
        archive += head.encode() + data + b"\n" * (len(data) % 2)
    return f"{NAME}_{version()}_{DEBIAN[architecture]}.deb", archive


def image(program, architecture, when):
    """A container image from scratch, as an OCI archive: the program, a place for runs, and nothing else."""
    layer = tar({"usr/bin/stackline": (program, 0o755), "tmp/.keep": (b"", 0o644),
                 "work/.keep": (b"", 0o644)}, "", when)
    blobs = {}

    def blob(data, media):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    def described(value, media):
        return blob(json.dumps(value, sort_keys=True).encode(), media)

    kind = "application/vnd.oci.image"
    import datetime
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = described({
        "architecture": OCI[architecture], "os": "linux", "created": created,
        "config": {"Entrypoint": ["/usr/bin/stackline"], "WorkingDir": "/work",
                   "Env": ["PATH=/usr/bin", "STACKLINE_RUNS=/work/stackline-runs"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }, f"{kind}.config.v1+json")
    packed = blob(compressed(layer), f"{kind}.layer.v1.tar+gzip")
    manifest = described({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
                          "config": config, "layers": [packed]}, f"{kind}.manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": f"{NAME}:{version()}"}
    index = json.dumps({"schemaVersion": 2, "manifests": [manifest]}, sort_keys=True).encode()
    files = {"oci-layout": (b'{"imageLayoutVersion": "1.0.0"}', 0o644), "index.json": (index, 0o644)}
    files.update({f"blobs/sha256/{digest}": (data, 0o644) for digest, data in blobs.items()})
    return f"{NAME}-{version()}-{architecture}.oci.tar", tar(files, "", when)


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in DEBIAN:
        sys.exit(__doc__.strip())
    binary, architecture, directory = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3])
    native = pathlib.Path(os.environ.get("STACKLINE_NATIVE", binary)).resolve()
    target = os.environ.get("STACKLINE_TARGET", f"{architecture}-unknown-linux-musl")
    when, program = epoch(), binary.read_bytes()
    if len(program) > MOST_BYTES:
        sys.exit(f"error: the program has {len(program) / 1e6:.1f} MB, and a release at most {MOST_BYTES / 1e6:.0f} MB\n"
                 "hint: build it with packaging/build, which strips it; `cargo bloat` shows what grew")
    files = contents(binary, native, target)
    directory.mkdir(parents=True, exist_ok=True)
    prefix = f"{NAME}-{version()}-{architecture}/"
    made = [
        (f"{NAME}-{version()}-{architecture}.tar.gz", compressed(tar(files, prefix, when))),
        wheel(program, architecture, when, target),
        debian(files, architecture, when),
        image(program, architecture, when),
        (f"{NAME}-{version()}-{architecture}.cdx.json", files["share/doc/stackline/components.cdx.json"][0]),
    ]
    for name, data in made:
        (directory / name).write_bytes(data)
        print(f"{hashlib.sha256(data).hexdigest()}  {name}")


main()
