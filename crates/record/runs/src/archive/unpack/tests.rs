//! What goes into an archive comes out of it, and an archive from anybody does no harm.

use super::*;
use crate::archive::{ArchivedFile, write_archive};
use crate::{RunDirectory, RunInputs};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use std::time::UNIX_EPOCH;
use tar::{Builder, Header};

/// A kept run with a capture and a host whose file has a long name.
fn run(root: &Path) -> PathBuf {
    let mut run = RunDirectory::create(root, "wan", UNIX_EPOCH, RunFileAccess::Private).unwrap();
    run.write_specification("10 rr 32;").unwrap();
    run.write_inputs(&RunInputs::default()).unwrap();
    run.write_plan(&Plan::default()).unwrap();
    let path = run.path().to_owned();
    for name in [
        format!("events/{}.parquet", "x".repeat(200)),
        "captures/n.1.1.pcapng".to_owned(),
    ] {
        fs::create_dir_all(path.join(&name).parent().unwrap()).unwrap();
        // The end of a Parquet file with an empty footer.
        fs::write(path.join(name), "\0\0\0\0PAR1").unwrap();
    }
    let record = RunRecord {
        elapsed_ns: 7,
        ..RunRecord::default()
    };
    run.append(&record).unwrap();
    run.finish(&[record], true, None).unwrap();
    path
}

fn archived(run: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_archive(run, &mut bytes).unwrap();
    bytes
}

/// Adds bytes as an archive to another directory of runs.
fn added(root: &Path, bytes: &[u8]) -> Result<AddedRun, Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    add_archive(root, file.path(), RunFileAccess::Private)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_comes_back_with_the_same_bytes_and_is_not_added_twice() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let original = run(here.path());
    let bytes = archived(&original);
    assert_eq!(bytes, archived(&original));
    let first = added(there.path(), &bytes).unwrap();
    assert!(!first.was_kept);
    assert_eq!(first.path.file_name(), original.file_name());
    assert_eq!(
        archived(&first.path),
        bytes,
        "an archive of what was added is the same"
    );
    for file in &first.contents.files {
        let read = |run: &Path| fs::read(run.join(&file.name)).unwrap();
        assert_eq!(read(&first.path), read(&original), "{}", file.name);
    }
    assert!(
        first
            .contents
            .files
            .iter()
            .any(|file| file.name.len() > 200)
    );
    assert!(!first.path.join(files::JOURNAL).exists());
    assert!(added(there.path(), &bytes).unwrap().was_kept);
    fs::write(first.path.join(files::NOTE), "mine").unwrap();
    let second = added(there.path(), &bytes).unwrap();
    assert!(
        second.path.to_str().unwrap().ends_with("-wan-2"),
        "{second:?}"
    );
    assert_eq!(fs::read(first.path.join(files::NOTE)).unwrap(), b"mine");
    assert_eq!(
        names(there.path()).len(),
        2,
        "nothing is left of the unpacking"
    );
}

#[test]
fn a_run_that_is_being_written_is_not_archived() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path(), "a", UNIX_EPOCH, RunFileAccess::Private).unwrap();
    let error = write_archive(run.path(), io::sink()).unwrap_err();
    assert!(error.message.contains("still being written"), "{error}");
}

/// An entry of an archive that somebody made by hand.
struct Forged<'b> {
    kind: EntryType,
    path: &'b str,
    bytes: &'b [u8],
}

fn forged(entries: &[Forged<'_>]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for Forged { kind, path, bytes } in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        // Written as it is: the library refuses `..`.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        if kind.is_symlink() {
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
        }
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

const STATUS: &[u8] =
    b"{\"complete\": true, \"reason\": null, \"stackline\": \"0.1.0\", \"started\": \"\", \"records\": 0}";

/// A list of files as text, with a digest that fits it.
fn list(run: &str, names: &[(&str, &[u8])]) -> String {
    let files: Vec<ArchivedFile> = names
        .iter()
        .map(|(name, bytes)| ArchivedFile {
            name: (*name).to_owned(),
            bytes: bytes.len() as u64,
            sha256: crate::sha256::sha256(std::str::from_utf8(bytes).unwrap()),
        })
        .collect();
    let lines = files
        .iter()
        .map(|file| format!("{}  {}\n", file.sha256, file.name));
    let contents = ArchiveContents {
        archive: FORMAT,
        stackline: "0.1.0".to_owned(),
        run: run.to_owned(),
        digest: crate::sha256::sha256(&lines.collect::<String>()),
        files,
    };
    serde_json::to_string(&contents).unwrap()
}

const fn file<'b>(path: &'b str, bytes: &'b [u8]) -> Forged<'b> {
    Forged {
        kind: EntryType::Regular,
        path,
        bytes,
    }
}

/// The sentence with which these entries are refused. Nothing may be left of them.
fn refusal(entries: &[Forged<'_>]) -> String {
    let root = tempfile::tempdir().unwrap();
    let error = added(root.path(), &forged(entries)).unwrap_err();
    assert_eq!(names(root.path()), [""; 0]);
    error.to_string()
}

#[test]
fn what_is_not_in_the_list_or_leads_elsewhere_is_refused() {
    let sound = list("r", &[("status.json", STATUS)]);
    let sound = sound.as_bytes();
    let root = tempfile::tempdir().unwrap();
    let entries = [file("r/archive.json", sound), file("r/status.json", STATUS)];
    assert!(added(root.path(), &forged(&entries)).is_ok());

    let link = Forged {
        kind: EntryType::Symlink,
        path: "r/status.json",
        bytes: b"",
    };
    let device = Forged {
        kind: EntryType::Char,
        path: "r/status.json",
        bytes: b"",
    };
    let refusals = [
        refusal(&[file("r/archive.json", sound), link]),
        refusal(&[file("r/archive.json", sound), device]),
        refusal(&[
            file("r/archive.json", sound),
            file("../status.json", STATUS),
        ]),
        refusal(&[file("r/archive.json", sound), file("r/status.json", b"{}")]),
        refusal(&[file("r/archive.json", sound)]),
        refusal(&[
            file("r/archive.json", sound),
            file("r/status.json", STATUS),
            file("r/status.json", STATUS),
        ]),
        refusal(&[file("r/status.json", STATUS)]),
        refusal(&[file("s/archive.json", sound)]),
    ];
    let whys = [
        "not a regular file",
        "not a regular file",
        "stands where status.json should",
        "another size",
        "ends too early",
        "more entries",
        "does not begin with archive.json",
        "another name than its run",
    ];
    for (refusal, why) in refusals.iter().zip(whys) {
        assert!(refusal.contains(why), "{why}: {refusal}");
    }
}

#[test]
fn lists_with_foreign_names_false_digests_or_impossible_sizes_are_refused() {
    let listed = |run: &str, names: &[(&str, &[u8])]| {
        refusal(&[file("r/archive.json", list(run, names).as_bytes())])
    };
    let status: (&str, &[u8]) = ("status.json", STATUS);
    assert!(listed("..", &[status]).contains("name of a directory"));
    assert!(listed("r", &[("/etc/passwd", b"x"), status]).contains("does not belong to a run"));
    assert!(
        listed("r", &[("events/../x.parquet", b"x"), status]).contains("does not belong to a run")
    );
    assert!(listed("r", &[status, status]).contains("names one twice"));
    assert!(listed("r", &[]).contains("has no status.json"));
    let changed = |from: &str, to: &str| {
        let text = list("r", &[status]).replace(from, to);
        refusal(&[file("r/archive.json", text.as_bytes())])
    };
    assert!(changed("\"digest\":\"", "\"digest\":\"0").contains("its digest is not"));
    let bytes = format!("\"bytes\":{}", STATUS.len());
    assert!(changed(&bytes, "\"bytes\":99999999999").contains("cannot be as large"));
    assert!(changed(&bytes, "\"bytes\":18446744073709551615").contains("larger than 256 GiB"));
    assert!(changed("\"archive\":1", "\"archive\":2").contains("this version reads form 1"));
    assert!(changed("{", "[").contains("cannot be read"));
}

#[test]
fn neither_a_cut_nor_a_changed_archive_is_added() {
    let (here, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = archived(&run(here.path()));
    for cut in [0, 1, 20, bytes.len() / 2, bytes.len() - 40] {
        assert!(added(root.path(), &bytes[..cut]).is_err(), "{cut}");
    }
    assert!(added(root.path(), b"PK\x03\x04 not this form").is_err());
    assert_eq!(names(root.path()), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_change_is_noticed_or_changes_nothing(at in 0_usize..2000, to in any::<u8>()) {
        let root = tempfile::tempdir().unwrap();
        let original = run(root.path());
        let mut bytes = archived(&original);
        let root = tempfile::tempdir_in(root.path()).unwrap();
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(run) = added(root.path(), &bytes) {
            for file in &run.contents.files {
                let read = |run: &Path| fs::read(run.join(&file.name)).unwrap();
                prop_assert_eq!(read(&run.path), read(&original));
            }
        } else {
            prop_assert_eq!(names(root.path()), [""; 0]);
        }
    }
}
