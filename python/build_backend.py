"""Builds the wheel of the Python package (PEP 517, PEP 660), without any other tool.

`pip install ./python` installs the package alone; it finds the program by STACKLINE or in PATH. `packaging/package.py` adds the
program to the wheel. The same files give the same bytes.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import tarfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME = "stackline"
SUMMARY = "Shows where the time of a distributed application goes, and what would make it faster"
# Modules that stand beside the package, each usable alone.
MODULES = ("stackline_blockclient.py", "stackline_events.py")
# What asks for which libraries; none is needed otherwise.
EXTRAS = {
    "arrow": ("pyarrow",),
    "pandas": ("pandas", "pyarrow"),
    "plot": ("matplotlib",),
    "polars": ("polars",),
}
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")


def version():
    """The version of the package."""
    text = (HERE / NAME / "_version.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.M).group(1)


def package_files():
    """The installed files by their path, without what Python makes of them."""
    paths = [HERE / name for name in MODULES]
    paths += [path for path in (HERE / NAME).rglob("*") if path.suffix == ".py" or path.name == "py.typed"]
    return {path.relative_to(HERE).as_posix(): path.read_bytes() for path in sorted(paths)}


def licences():
    """The texts of licences, which stand above in the repository and beside this file in a source archive."""
    found = {}
    for name in LICENCES:
        for directory in (HERE, HERE.parent):
            if (directory / name).is_file():
                found[name] = (directory / name).read_bytes()
                break
    return found


def metadata(description):
    """METADATA with this text as description, in Markdown."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {version()}",
        f"Summary: {SUMMARY}",
        "License: MIT OR Apache-2.0",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
    ]
    for extra, libraries in EXTRAS.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {library}; extra == "{extra}"' for library in libraries]
    lines.append("Provides-Extra: all")
    everything = sorted({library for libraries in EXTRAS.values() for library in libraries})
    lines += [f'Requires-Dist: {library}; extra == "all"' for library in everything]
    return ("\n".join(lines) + f"\n\n{description}").encode()


def wheel(files, tags, when, description=SUMMARY):
    """The bytes of a wheel with these files, and what describes them. `tags` are those of platforms."""
    info = f"{NAME}-{version()}.dist-info"
    is_pure = tuple(tags) == ("any",)
    files = dict(files)
    files[f"{info}/METADATA"] = metadata(description)
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: {str(is_pure).lower()}\n"
        + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    ).encode()
    files.update({f"{info}/licenses/{name}": text for name, text in licences().items()})

    def row(path, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(data)}\n"

    record = "".join(row(path, data) for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, time.gmtime(max(when, 315_532_800))[:6])
            mode = 0o755 if "/scripts/" in path else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return written.getvalue()


def wheel_name(tags):
    """The file name of a wheel."""
    return f"{NAME}-{version()}-py3-none-{'.'.join(tags)}.whl"


def _when():
    return int(os.environ.get("SOURCE_DATE_EPOCH") or 315_532_800)


def _written(directory, name, data):
    (pathlib.Path(directory) / name).write_bytes(data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tags = ("any",)
    return _written(wheel_directory, wheel_name(tags), wheel(package_files(), tags, _when()))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    tags = ("any",)
    files = {f"__editable__.{NAME}.pth": f"{HERE}\n".encode()}
    return _written(wheel_directory, wheel_name(tags), wheel(files, tags, _when()))


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}-{version()}"
    files = {**package_files(), **licences(), "PKG-INFO": metadata(SUMMARY)}
    for path in ("pyproject.toml", "build_backend.py"):
        files[path] = (HERE / path).read_bytes()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.mode, entry.mtime, entry.size = 0o644, _when(), len(data)
            archive.addfile(entry, io.BytesIO(data))
    return _written(sdist_directory, f"{name}.tar.gz", written.getvalue())


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_editable = get_requires_for_build_wheel
