//! Plans a query, carries it out within a limit of memory, prints its rows, as they come where the format permits.

use crate::error::Error;
use crate::tables::{Run, register};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::arrow::{csv, json};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use std::io::{Stdout, stdout};
use std::path::PathBuf;
use std::sync::Arc;

/// A form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Table,
    Csv,
    Json,
}

/// Carries it out.
pub(crate) fn run(
    runs: &[PathBuf],
    sql: &str,
    format: Format,
    memory_mib: usize,
) -> Result<(), Error> {
    let runs: Vec<Run> = runs
        .iter()
        .map(|path| Run::find(path))
        .collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|cause| failed(&cause))?;
    runtime.block_on(async {
        let memory = RuntimeEnvBuilder::new()
            .with_memory_limit(memory_mib << 20, 1.0)
            .build_arc();
        let memory = memory.map_err(|cause| failed(&cause))?;
        let session = SessionContext::new_with_config_rt(SessionConfig::new(), memory);
        register(&session, &runs)
            .await
            .map_err(|cause| failed(&cause))?;
        // Rows are asked for; nothing is written or set.
        let reading = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let rows = session
            .sql_with_options(sql, reading)
            .await
            .map_err(|cause| refused(&cause))?;
        let empty = RecordBatch::new_empty(Arc::new(rows.schema().as_arrow().clone()));
        if format == Format::Table {
            // Columns are as wide as their widest row, so all rows are wanted at once.
            let batches = rows.collect().await.map_err(|cause| failed(&cause))?;
            let batches = if batches.is_empty() {
                vec![empty]
            } else {
                batches
            };
            println!(
                "{}",
                pretty_format_batches(&batches).map_err(|cause| failed(&cause))?
            );
            return Ok(());
        }
        let mut printer = Printer::new(format);
        // No rows still have names of columns.
        printer.print(&empty).map_err(|cause| failed(&cause))?;
        let mut stream = rows
            .execute_stream()
            .await
            .map_err(|cause| failed(&cause))?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|cause| failed(&cause))?;
            printer.print(&batch).map_err(|cause| failed(&cause))?;
        }
        printer.finish().map_err(|cause| failed(&cause))
    })
}

/// Prints rows as they come.
enum Printer {
    Csv(csv::Writer<Stdout>),
    Json(json::LineDelimitedWriter<Stdout>),
}

impl Printer {
    fn new(format: Format) -> Self {
        if format == Format::Csv {
            Self::Csv(csv::Writer::new(stdout()))
        } else {
            Self::Json(json::LineDelimitedWriter::new(stdout()))
        }
    }

    fn print(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Csv(writer) => writer.write(batch),
            Self::Json(writer) => writer.write(batch),
        }
    }

    fn finish(self) -> Result<(), ArrowError> {
        match self {
            Self::Csv(_) => Ok(()),
            Self::Json(mut writer) => writer.finish(),
        }
    }
}

/// A query that cannot be planned is the user's.
fn refused(cause: &DataFusionError) -> Error {
    let message = cause.strip_backtrace();
    Error::input(
        message.lines().next().unwrap_or_default(),
        "the tables are results and events; `SELECT * FROM events LIMIT 1` shows the columns",
    )
}

fn failed(cause: &dyn std::fmt::Display) -> Error {
    let message = cause.to_string();
    let message = message.lines().next().unwrap_or_default().to_owned();
    Error {
        message,
        hint: "narrow the query or raise --memory".to_owned(),
        code: 1,
    }
}
