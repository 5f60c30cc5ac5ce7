//! A trace for Perfetto's viewer: a tar archive of one file per host and the manifest that relates them.

use super::format::{Exported, Exporter, unwritten};
use super::selection::ExportSelection;
use crate::perfetto::{MANIFEST, files};
use stackline_core::error::Result;
use std::io::{Result as Io, Write};
use std::path::Path;

pub(crate) const TO: Exporter = Exporter {
    name: "perfetto",
    export,
};

fn export(run: &Path, chosen: &ExportSelection, to: &mut dyn Write) -> Result<Exported> {
    let loaded = chosen.loaded(run)?;
    let mut files = files(&loaded.events, &loaded.lifelines, &loaded.index);
    let manifest = files.remove(MANIFEST).unwrap_or_default();
    let mut archive = tar::Builder::new(to);
    // The viewer expects the manifest first.
    let all = [(MANIFEST.to_owned(), manifest)].into_iter().chain(files);
    let written: Io<()> = all.into_iter().try_for_each(|(name, bytes)| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, &bytes[..])
    });
    written.and_then(|()| archive.finish()).map_err(unwritten)?;
    Ok(Exported::from(loaded.events.len() as u64))
}
