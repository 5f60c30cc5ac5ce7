//! Packages install with the tools of their kinds, without a network, and the same program gives the same bytes.

use crate::support::{Place, has_program, program, skip};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of a small program that becomes the one under test: what is packed is not read, so its size is all that differs.
fn packed(place: &Place, directory: &str) -> BTreeMap<String, PathBuf> {
    let stand_in = place.script(
        "stand-in",
        &format!("#!/bin/sh\nexec '{}' \"$@\"\n", program()),
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    succeeds(
        Command::new(root.join("packaging/package.py"))
            .arg(stand_in)
            .arg("x86_64")
            .arg(place.path(directory))
            .env("STACKLINE_NATIVE", program())
            .env("STACKLINE_TARGET", "x86_64-unknown-linux-gnu")
            .env("SOURCE_DATE_EPOCH", "1700000000"),
    );
    let made = fs::read_dir(place.path(directory)).unwrap();
    made.map(|entry| entry.unwrap().path())
        .map(|path| (path.extension().unwrap().to_str().unwrap().to_owned(), path))
        .collect()
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}: {out}{err}");
    out
}

/// The program without a network, in a user namespace where it may write as root.
fn offline(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--net", "--"])
        .arg(program);
    command
}

/// What an installed program measures first, without a network.
fn first_figure(place: &Place, program: &Path) {
    let text = "network n { host a, b; link a - b 10 Mbit/s 5 ms; } 2 from a to b rr 32*10 over tcp across n in simulated";
    let mut command = offline(program);
    command
        .args(["run", "-e", text])
        .env("STACKLINE_RUNS", place.path("runs"));
    let shown = succeeds(&mut command);
    assert!(shown.contains("10.1 ms"), "{shown}");
}

fn version_of(path: &Path) -> String {
    succeeds(Command::new(path).arg("--version"))
}

#[test]
fn packages_install_and_are_the_same_each_time() {
    if !has_program("dpkg-deb", "dpkg") {
        return skip("no dpkg-deb");
    }
    let kept = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/venv/bin/python");
    let python = std::env::var_os("STACKLINE_PYTHON").map_or_else(kept, PathBuf::from);
    if !python.is_file() {
        return skip(
            "no Python with pip under target/venv (`.ci/tools` makes it) nor in STACKLINE_PYTHON",
        );
    }
    let place = Place::new();
    let (made, again) = (packed(&place, "one"), packed(&place, "two"));
    assert_eq!(made.len(), 5);
    for (kind, path) in &made {
        assert_eq!(
            fs::read(path).unwrap(),
            fs::read(&again[kind]).unwrap(),
            "{kind}"
        );
    }
    let expected = version_of(Path::new(program()));

    let tarball = place.path("tarball");
    fs::create_dir(&tarball).unwrap();
    succeeds(
        Command::new("tar")
            .arg("-xzf")
            .arg(&made["gz"])
            .arg("-C")
            .arg(&tarball),
    );
    let prefix = tarball.join("stackline-0.1.0-x86_64");
    assert_eq!(version_of(&prefix.join("bin/stackline")), expected);
    first_figure(&place, &prefix.join("bin/stackline"));
    for file in [
        "share/man/man1/stackline-trace.1.gz",
        "share/stackline/completions/_stackline",
        "share/doc/stackline/LICENSE-MIT",
        "share/doc/stackline/schema.json",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    let licences = prefix.join("share/doc/stackline/LICENSES-OF-COMPONENTS.txt");
    let licences = fs::read_to_string(licences).unwrap();
    assert!(licences.contains("\nring 0."), "{}", &licences[..500]);
    assert!(!licences.contains("\nproptest "), "only tests use it");

    let debian = place.path("debian");
    succeeds(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(&made["deb"])
            .arg(&debian),
    );
    assert_eq!(version_of(&debian.join("usr/bin/stackline")), expected);
    let installed = place.path("installed");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        fs::create_dir_all(installed.join(folder)).unwrap();
    }
    fs::write(installed.join("var/lib/dpkg/status"), "").unwrap();
    succeeds(
        offline("dpkg")
            .arg(format!("--root={}", installed.display()))
            .args([
                "--force-script-chrootless",
                "--force-bad-path",
                "--log=/dev/null",
                "--install",
            ])
            .arg(&made["deb"]),
    );
    first_figure(&place, &installed.join("usr/bin/stackline"));
    let field = |name| {
        succeeds(
            Command::new("dpkg-deb")
                .arg("--field")
                .arg(&made["deb"])
                .arg(name),
        )
    };
    assert_eq!(
        (field("Package"), field("Architecture")),
        ("stackline\n".into(), "amd64\n".into())
    );

    let wheel = place.path("wheel");
    succeeds(
        offline(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-index",
                "--root-user-action=ignore",
                "--target",
            ])
            .arg(&wheel)
            .arg(&made["whl"]),
    );
    assert_eq!(version_of(&wheel.join("bin/stackline")), expected);
    first_figure(&place, &wheel.join("bin/stackline"));
    let text = "import stackline, stackline_events; print(stackline.session().program)";
    let mut import = Command::new(&python);
    import
        .args(["-c", text])
        .env("PYTHONPATH", &wheel)
        .env_remove("STACKLINE");
    let found = succeeds(&mut import);
    let own = fs::canonicalize(wheel.join("bin")).unwrap();
    assert_eq!(Path::new(found.trim()), own.join("stackline"));

    let bill: serde_json::Value =
        serde_json::from_slice(&fs::read(&made["json"]).unwrap()).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let names: Vec<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert!(
        names.contains(&"clap") && names.contains(&"stackline-trace"),
        "{names:?}"
    );
}

/// In roots that have the package, a shell for the stand-in, and what the program under test is linked with: no `/etc`, no `/sys`, no network.
#[test]
fn packages_measure_in_bare_roots() {
    if !has_program("busybox", "busybox-static") || !has_program("dpkg", "dpkg") {
        return;
    }
    let place = Place::new();
    packed(&place, "made");
    let busybox = succeeds(Command::new("sh").args(["-c", "command -v busybox"]));
    let linked = succeeds(Command::new("ldd").arg(program()));
    let libraries = linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/check");
    let shown = succeeds(
        Command::new(check)
            .arg(place.path("made"))
            .arg(format!("{}=/bin/sh", busybox.trim()))
            .arg(format!("{0}={0}", program()))
            .args(libraries.map(|library| format!("{library}={library}"))),
    );
    let ways: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split_once(':').map(|(way, _)| way))
        .collect();
    assert_eq!(ways, ["tarball-busybox", "debian", "wheel", "image"]);
}

#[test]
fn the_image_has_the_program_and_its_digests_are_right() {
    let place = Place::new();
    let image = &packed(&place, "made")["tar"];
    let layout = place.path("layout");
    fs::create_dir(&layout).unwrap();
    succeeds(
        Command::new("tar")
            .arg("-xf")
            .arg(image)
            .arg("-C")
            .arg(&layout),
    );
    let read = |path: PathBuf| -> serde_json::Value {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    };
    let blob = |of: &serde_json::Value| {
        let digest = of["digest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap()
            .to_owned();
        let path = layout.join("blobs/sha256").join(&digest);
        assert_eq!(
            fs::metadata(&path).unwrap().len(),
            of["size"].as_u64().unwrap()
        );
        let sum = succeeds(Command::new("sha256sum").arg(&path));
        assert!(sum.starts_with(&digest), "{sum}");
        path
    };
    let manifest = read(blob(&read(layout.join("index.json"))["manifests"][0]));
    let config = read(blob(&manifest["config"]));
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/stackline");
    let layer = blob(&manifest["layers"][0]);
    let root = place.path("root");
    fs::create_dir(&root).unwrap();
    succeeds(
        Command::new("tar")
            .arg("-xzf")
            .arg(layer)
            .arg("-C")
            .arg(&root),
    );
    assert_eq!(
        version_of(&root.join("usr/bin/stackline")),
        version_of(Path::new(program()))
    );
}

#[test]
fn a_program_that_is_too_large_is_not_packed() {
    let place = Place::new();
    let large = fs::File::create(place.path("large")).unwrap();
    large.set_len(31_000_000).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let output = Command::new(root.join("packaging/package.py"))
        .args([place.path("large"), "x86_64".into(), place.path("made")])
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        said.starts_with("error: the program has 31.0 MB, and a release at most 30 MB"),
        "{said}"
    );
}
