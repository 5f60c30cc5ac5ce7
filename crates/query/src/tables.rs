//! The tables: Parquet files of runs, found as `stackline` lays them out, under one schema with the run's name beside it.

use crate::error::Error;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::prelude::{DataFrame, SessionContext, col, lit};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run's files.
pub(crate) struct Run {
    name: String,
    results: Vec<PathBuf>,
    events: Vec<PathBuf>,
}

impl Run {
    /// A directory, or its name under `$STACKLINE_RUNS`, else `./stackline-runs`.
    pub(crate) fn find(path: &Path) -> Result<Self, Error> {
        let root = env::var_os("STACKLINE_RUNS")
            .filter(|v| !v.is_empty())
            .map_or_else(|| "stackline-runs".into(), PathBuf::from);
        let candidates = [path.to_path_buf(), root.join(path)];
        let found = candidates
            .into_iter()
            .find(|candidate| candidate.join("status.json").is_file());
        let Some(found) = found else {
            let hint = "specify the runs first and the query last, in quotes";
            return Err(Error::input(format!("no run at {}", path.display()), hint));
        };
        let absolute = fs::canonicalize(&found).unwrap_or(found);
        let name = absolute
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let results = is_there(&absolute.join("results.parquet"), fs::FileType::is_file)?;
        Ok(Self {
            name,
            results: results.into_iter().collect(),
            events: event_files(&absolute.join("events"))?,
        })
    }
}

/// What has that name in a run, which somebody else may have made: of another kind, a link or a pipe, it is refused.
fn is_there(
    path: &Path,
    is_right: impl Fn(&fs::FileType) -> bool,
) -> Result<Option<PathBuf>, Error> {
    match fs::symlink_metadata(path) {
        Ok(about) if is_right(&about.file_type()) => Ok(Some(path.to_owned())),
        Ok(_) => Err(Error::input(
            format!(
                "{} cannot be read: it is a link, a pipe or something else of the wrong type",
                path.display()
            ),
            "copy the run so that links are replaced by the files they point to (`cp -rL`)",
        )),
        Err(_) => Ok(None),
    }
}

fn event_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let directory = is_there(directory, fs::FileType::is_dir)?;
    let entries = directory
        .into_iter()
        .flat_map(fs::read_dir)
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "parquet")
    });
    found.sort_unstable();
    found
        .iter()
        .try_for_each(|path| is_there(path, fs::FileType::is_file).map(drop))?;
    Ok(found)
}

/// Gives a session the tables of runs. A table that no run has files of is not there.
pub(crate) async fn register(
    session: &SessionContext,
    runs: &[Run],
) -> Result<(), DataFusionError> {
    for (table, files) in [
        ("results", Run::results as fn(&Run) -> &[PathBuf]),
        ("events", Run::events),
    ] {
        let mut whole: Option<DataFrame> = None;
        for run in runs.iter().filter(|run| !files(run).is_empty()) {
            let rows = read(session, files(run))
                .await?
                .with_column("run_name", lit(run.name.as_str()))?;
            whole = Some(match whole {
                Some(others) => others.union_by_name(rows)?,
                None => rows,
            });
        }
        if let Some(whole) = whole {
            session.register_table(table, whole.into_view())?;
        }
    }
    Ok(())
}

impl Run {
    fn results(&self) -> &[PathBuf] {
        &self.results
    }

    fn events(&self) -> &[PathBuf] {
        &self.events
    }
}

/// All rows of some files of one run; columns that only some of them have are null in the others.
async fn read(session: &SessionContext, files: &[PathBuf]) -> Result<DataFrame, DataFusionError> {
    let urls: Result<Vec<_>, _> = files
        .iter()
        .map(|file| ListingTableUrl::parse(file.to_string_lossy()))
        .collect();
    let options = ListingOptions::new(Arc::new(ParquetFormat::default().with_enable_pruning(true)));
    let config = ListingTableConfig::new_with_multi_paths(urls?).with_listing_options(options);
    let config = config.infer_schema(&session.state()).await?;
    // What one file has in every row another may not have at all.
    let nullable = config
        .file_schema
        .iter()
        .flat_map(|schema| schema.fields().iter());
    let nullable: Vec<_> = nullable
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect();
    let config = config.with_schema(Arc::new(Schema::new(nullable)));
    let table = session.read_table(Arc::new(ListingTable::try_new(config)?))?;
    // Texts without the view's type, so that every client prints them.
    let fields: Vec<_> = table.schema().fields().iter().cloned().collect();
    let plain = fields.iter().map(|field| match field.data_type() {
        DataType::Binary | DataType::BinaryView => {
            datafusion::prelude::cast(col(format!("\"{}\"", field.name())), DataType::Utf8)
                .alias(field.name())
        }
        _ => col(format!("\"{}\"", field.name())),
    });
    table.select(plain.collect::<Vec<_>>())
}
