//! The columns of every file of events, and the sizes of its pages and row groups.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::Result as Parquet;
use parquet::schema::types::Type;
use stackline_events::table::FIELDS;
use std::sync::Arc;

/// Rows of a page, which is encoded and decoded at once.
pub(super) const PAGE: usize = 1 << 16;
/// Most rows of a row group.
pub(in crate::events) const GROUP: usize = 1 << 20;

/// Name of the column of times, ns of the host's own clock.
pub(super) const AT: &str = "at_ns";
/// Name of the column of keywords.
pub(super) const KEYWORD: &str = "keyword";
/// Name of the column of host names.
pub(super) const HOST: &str = "host";
/// Name of the column of data fields beyond the last one with its own columns, in the text form.
pub(super) const MORE: &str = "more";

/// The column for whole numbers of a data field, counted from 0.
pub(super) fn number_column(field: usize) -> String {
    format!("n{}", field + 1)
}

/// The column for other texts of a data field, counted from 0.
pub(super) fn text_column(field: usize) -> String {
    format!("t{}", field + 1)
}

/// The columns of every file of events.
pub(super) fn schema() -> Parquet<Type> {
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::INT64)
            .with_repetition(repetition)
            .build()
    };
    let text = |name: &str, repetition| {
        let builder =
            Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition);
        builder.with_logical_type(Some(LogicalType::String)).build()
    };
    let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let mut columns = vec![
        number(AT, required)?,
        text(KEYWORD, required)?,
        text(HOST, required)?,
    ];
    for field in 0..FIELDS {
        columns.extend([
            number(&number_column(field), optional)?,
            text(&text_column(field), optional)?,
        ]);
    }
    columns.push(text(MORE, optional)?);
    Type::group_type_builder("event")
        .with_fields(columns.into_iter().map(Arc::new).collect())
        .build()
}
