//! What a file of a plot holds, by its name.

use crate::exit::{Error, Result};
use stackline_report::scene::picture_file::PictureFileFormat;
use std::path::Path;

/// What a file holds, by its name's extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlotFileFormat {
    /// A picture.
    Picture(PictureFileFormat),
    /// A page with the picture and the points.
    Page,
    /// The points as CSV.
    Points,
}

impl PlotFileFormat {
    /// That of a file; an error with a hint if its ending is unknown.
    pub(crate) fn of_path(path: &Path) -> Result<Self> {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Self::Points),
            Some("html" | "htm") => Ok(Self::Page),
            _ => PictureFileFormat::from_path(path)
                .map(Self::Picture)
                .ok_or_else(|| {
                    Error::input(format!("the type of {} is unknown", path.display()))
                        .hint("name a picture FILE.svg, .png or .pdf, a page FILE.html, or the points FILE.csv")
                }),
        }
    }
}
