//! Plans a query, carries it out within a limit of memory, prints its rows.

use crate::tables::{Run, register};
use crate::{Error, Format};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::arrow::{csv, json};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use std::path::PathBuf;

/// Carries it out.
pub(crate) fn run(runs: &[PathBuf], sql: &str, format: Format, memory_mib: usize) -> Result<(), Error> {
    let runs: Vec<Run> = runs.iter().map(|path| Run::find(path)).collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|cause| failed(&cause))?;
    runtime.block_on(async {
        let memory = RuntimeEnvBuilder::new().with_memory_limit(memory_mib << 20, 1.0).build_arc();
        let memory = memory.map_err(|cause| failed(&cause))?;
        let session = SessionContext::new_with_config_rt(SessionConfig::new(), memory);
        register(&session, &runs).await.map_err(|cause| failed(&cause))?;
        // Rows are asked for; nothing is written or set.
        let reading = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let rows = session.sql_with_options(sql, reading).await.map_err(|cause| refused(&cause))?;
        let schema = rows.schema().as_arrow().clone();
        let batches = rows.collect().await.map_err(|cause| failed(&cause))?;
        print(&batches, &schema.into(), format).map_err(|cause| failed(&cause))
    })
}

fn print(batches: &[RecordBatch], schema: &SchemaRef, format: Format) -> Result<(), ArrowError> {
    let stdout = std::io::stdout().lock();
    // No rows still have names of columns.
    let empty = [RecordBatch::new_empty(schema.clone())];
    let batches = if batches.is_empty() { &empty } else { batches };
    match format {
        Format::Table => {
            println!("{}", pretty_format_batches(batches)?);
            Ok(())
        }
        Format::Csv => {
            let mut writer = csv::Writer::new(stdout);
            batches.iter().try_for_each(|batch| writer.write(batch))
        }
        Format::Json => {
            let mut writer = json::LineDelimitedWriter::new(stdout);
            batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.finish()
        }
    }
}

/// A query that cannot be planned is the user's.
fn refused(cause: &DataFusionError) -> Error {
    let message = cause.strip_backtrace();
    Error::input(
        message.lines().next().unwrap_or_default(),
        "tables are results and events; `SELECT * FROM events LIMIT 1` shows columns",
    )
}

fn failed(cause: &dyn std::fmt::Display) -> Error {
    let message = cause.to_string();
    let message = message.lines().next().unwrap_or_default().to_owned();
    Error { message, hint: "a smaller question, or more of --memory".to_owned(), code: 1 }
}
