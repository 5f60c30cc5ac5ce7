//! The names of the files in a run directory, and how they are opened.
//!
//! A run may have been made by another user with bad intent. Only regular files inside it are opened, links are not
//! followed, and nothing that blocks or never ends is read. What is written is readable by its user alone until the
//! run is shared.

use crate::Error;
use stackline_guard::directory::Directory;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The largest text file of a run that is read (specification, plan, environment, status, index, findings), in bytes.
const LARGEST_TEXT: u64 = 256 << 20;
/// The largest journal or results file that is read, in bytes.
const LARGEST_RECORDS: u64 = 4 << 30;
/// Most event files of one run.
pub(crate) const MOST_FILES: usize = 100_000;

/// The specification, as it was given.
pub(crate) const SPECIFICATION: &str = "specification.stackline";
/// The plan, as JSON.
pub(crate) const PLAN: &str = "plan.json";
/// Description of the machines, as JSON.
pub(crate) const ENVIRONMENT: &str = "environment.json";
/// Whether the run is complete, as JSON.
pub(crate) const STATUS: &str = "status.json";
/// Journal: records in the order they were made, one JSON line each.
pub(crate) const JOURNAL: &str = "runs.jsonl";
/// All records; written at the end of the run.
pub(crate) const RESULTS: &str = "results.parquet";

/// Findings about the run, such as what limits its performance, as JSON.
pub(crate) const FINDINGS: &str = "findings.json";

/// The user's note about the run.
pub(crate) const NOTE: &str = "note.txt";

/// The user's tags of the run, a word on each line.
pub(crate) const TAGS: &str = "tags.txt";

/// What the specification was given beside its text, as JSON.
pub(crate) const INPUTS: &str = "inputs.json";

/// In a run that came in an archive: that archive's list of files, as JSON.
pub(crate) const ARCHIVE: &str = "archive.json";

/// The directory of captured packets.
pub(crate) const CAPTURES: &str = "captures";

/// The run's report page.
pub(crate) const PAGE: &str = "report.html";

/// The index of the run's events, as JSON.
pub(crate) const INDEX: &str = "events/index.json";

/// The extension of a file of sorted events, after its host's name.
pub(crate) const SORTED: &str = "parquet";

/// The directory of events.
pub(crate) const EVENTS: &str = "events";

/// All names that a run directory has.
pub(crate) const ALL: [&str; 14] = [
    SPECIFICATION,
    PLAN,
    ENVIRONMENT,
    STATUS,
    JOURNAL,
    RESULTS,
    FINDINGS,
    NOTE,
    TAGS,
    INPUTS,
    ARCHIVE,
    PAGE,
    EVENTS,
    CAPTURES,
];

/// The run directory of a file, and the file's path in it: `RUN/NAME` or `RUN/events/NAME`.
fn within(path: &Path) -> Option<(&Path, &Path)> {
    let directory = path.parent()?;
    let run = if directory.file_name().is_some_and(|name| name == EVENTS) {
        directory.parent()?
    } else {
        directory
    };
    Some((
        if run.as_os_str().is_empty() {
            Path::new(".")
        } else {
            run
        },
        path.strip_prefix(run).ok()?,
    ))
}

/// Opens a regular file of a run.
///
/// # Errors
/// Those of the kernel; `InvalidInput` with the reason where the file is a link, a pipe or the like.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let (run, name) = within(path).ok_or(ErrorKind::NotFound)?;
    Directory::open(run)?.open_file(name)
}

/// Opens a file of a run whose size is limited: the journal, the results, or a text.
///
/// # Errors
/// Those of [`open`]; `FileTooLarge` when it is larger than the limit.
pub(crate) fn open_bounded(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let is_records = path
        .file_name()
        .is_some_and(|name| name == JOURNAL || name == RESULTS);
    let most = if is_records {
        LARGEST_RECORDS
    } else {
        LARGEST_TEXT
    };
    match file.metadata()?.len() {
        size if size > most => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it is {size} bytes long, more than the limit of {most}"),
        )),
        _ => Ok(file),
    }
}

/// Whether the path exists, whatever it is. A path that is not a regular file is refused when it is opened, instead of
/// being overlooked here.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether a run belongs to this user, so that files may be written into it.
pub(crate) fn is_own(run: &Path) -> bool {
    Directory::open(run).is_ok_and(|run| run.is_own())
}

/// Who may read a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunFileAccess {
    /// Its user alone: modes 0700 and 0600.
    #[default]
    Private,
    /// All users of this machine: modes 0755 and 0644.
    Shared,
}

impl RunFileAccess {
    /// The access of a directory, which new files in it inherit.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        let mode = fs::metadata(directory).map_or(0, |about| about.permissions().mode());
        if mode & 0o004 == 0 {
            Self::Private
        } else {
            Self::Shared
        }
    }

    /// The access of the directory that a path is in.
    fn within(path: &Path) -> Self {
        path.parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .map_or(Self::Private, Self::new)
    }

    const fn file_mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Shared => 0o644,
        }
    }

    const fn directory_mode(self) -> u32 {
        match self {
            Self::Private => 0o700,
            Self::Shared => 0o755,
        }
    }
}

/// The permissions for a new file of a run.
pub(crate) fn permissions(path: &Path) -> Permissions {
    Permissions::from_mode(RunFileAccess::within(path).file_mode())
}

/// Options for opening a file of a run: its permissions if it is new, and not to follow a link.
fn options(path: &Path) -> OpenOptions {
    let mut options = File::options();
    options
        .mode(permissions(path).mode())
        .custom_flags(no_links());
    options
}

/// Creates a file in a directory of a run, and the directory if there is none. A link at the path is not followed.
///
/// # Errors
/// Those of the kernel.
pub fn create_within(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent()
        && !is_there(directory)
    {
        make_directory(directory, RunFileAccess::within(directory))?;
    }
    create(path)
}

/// Creates a file of a run, or empties it. A link at the path is not followed.
///
/// # Errors
/// Those of the kernel.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    opened(path, options(path).write(true).create(true).truncate(true))
}

/// Opens a file of a run for appending, and creates it if there is none. A link at the path is not followed.
///
/// # Errors
/// Those of the kernel.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    opened(path, options(path).create(true).append(true))
}

/// Creates a new file of a run for appending.
///
/// # Errors
/// Those of the kernel, including `AlreadyExists`.
pub(crate) fn append_new(path: &Path) -> io::Result<File> {
    opened(path, options(path).create_new(true).append(true))
}

/// Opens a file; in a shared run it gets the run's permissions whatever the umask is.
fn opened(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = options.open(path)?;
    if RunFileAccess::within(path) == RunFileAccess::Shared {
        file.set_permissions(permissions(path))?;
    }
    Ok(file)
}

/// The flag with which opening a link fails.
pub(crate) const fn no_links() -> i32 {
    nix::fcntl::OFlag::O_NOFOLLOW.bits()
}

/// Creates a directory with the permissions of `access`.
///
/// # Errors
/// Those of the kernel, including `AlreadyExists`.
pub(crate) fn make_directory(path: &Path, access: RunFileAccess) -> io::Result<()> {
    DirBuilder::new()
        .mode(access.directory_mode())
        .create(path)?;
    match access {
        RunFileAccess::Private => Ok(()),
        // Set explicitly, since the umask may have removed permissions.
        RunFileAccess::Shared => {
            fs::set_permissions(path, Permissions::from_mode(access.directory_mode()))
        }
    }
}

/// Creates the directory of all runs if there is none. One that another user may have placed there is refused: a link
/// owned by another user, or another user's directory in a directory that all may write to.
///
/// # Errors
/// Those of the kernel; `PermissionDenied` with the reason.
pub(crate) fn make_root(root: &Path, access: RunFileAccess) -> io::Result<()> {
    let denied = |what: &str| {
        io::Error::new(
            ErrorKind::PermissionDenied,
            format!("it is {what} owned by another user"),
        )
    };
    let parent = root
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let own = nix::unistd::geteuid().as_raw();
    match fs::symlink_metadata(root) {
        Ok(there) if there.is_dir() && there.uid() == own && access == RunFileAccess::Shared => {
            // Shared runs are reached through this directory; private ones are protected by their own permissions.
            fs::set_permissions(root, Permissions::from_mode(there.mode() & 0o7777 | 0o055))
        }
        Ok(there) if there.uid() == own || there.uid() == 0 => Ok(()),
        Ok(there) if there.is_symlink() => Err(denied("a link")),
        Ok(_) if fs::metadata(parent).is_ok_and(|about| about.mode() & 0o002 != 0) => {
            Err(denied("a directory"))
        }
        Ok(_) => Ok(()),
        Err(_) => {
            let mode = access.directory_mode();
            DirBuilder::new().recursive(true).mode(mode).create(root)?;
            // Set explicitly, since the umask may have removed permissions.
            fs::set_permissions(root, Permissions::from_mode(mode))
        }
    }
}

/// Checks that a run belongs to this user. Nothing is written into a run of another user, who could redirect the
/// writing by links.
///
/// # Errors
/// When it belongs to another user.
pub(crate) fn must_be_own(run: &Path) -> Result<(), Error> {
    match Directory::open(run) {
        Ok(directory) if !directory.is_own() => {
            let message = format!(
                "{} belongs to another user, so stackline does not change it",
                run.display()
            );
            Err(Error::new(message, "copy it (`cp -r`) and use the copy"))
        }
        // A run that does not exist will be created; other errors are reported where the run is used.
        _ => Ok(()),
    }
}

/// Creates the run's directory and its directory of events if they do not exist. A link in place of the latter is
/// refused.
///
/// # Errors
/// Those of the kernel.
pub(crate) fn make_events(run: &Path) -> io::Result<()> {
    let events = run.join(EVENTS);
    if !is_there(run) {
        make_directory(run, RunFileAccess::within(run))?;
    }
    match make_directory(&events, RunFileAccess::new(run)) {
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(&events)?.is_dir() {
                true => Ok(()),
                false => Err(io::Error::new(
                    ErrorKind::NotADirectory,
                    "it is not a directory",
                )),
            }
        }
        made => made,
    }
}

/// The files in a run's directory of events with this extension, ordered by name; none where there is no such
/// directory.
///
/// # Errors
/// When that directory is a link or cannot be read.
pub(crate) fn of_events(run: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let events = run.join(EVENTS);
    let names = Directory::open(run).and_then(|run| run.names(Path::new(EVENTS), MOST_FILES));
    let names = match names {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Vec::new(),
        names => names.map_err(|cause| Error::reading(&events, &cause))?,
    };
    let mut found: Vec<PathBuf> = names.into_iter().map(|name| events.join(name)).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == extension));
    found.sort_unstable();
    Ok(found)
}

/// Waits until a file's contents are on the disk.
pub(crate) fn sync_file(path: &Path) -> Result<(), Error> {
    open(path)
        .and_then(|file| file.sync_all())
        .map_err(|cause| Error::writing(path, &cause))
}

/// Reads a text file of a run.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let text = within(path)
        .ok_or_else(|| ErrorKind::NotFound.into())
        .and_then(|(run, name)| Directory::open(run)?.read_text(name, LARGEST_TEXT));
    text.map_err(|cause| Error::reading(path, &cause))
}
