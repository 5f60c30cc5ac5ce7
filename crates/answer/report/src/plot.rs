//! Curves of kept runs as pictures, as characters on a terminal, as rows, as a page.
//!
//! | module | one idea |
//! | --- | --- |
//! | `plotted_axes` | which scales and units the axes of curves have |
//! | `line_picture` | curves with the bands of their intervals, in one panel or several |
//! | `heat_picture` | a figure over two variables as colours |
//! | `text_plot` | curves as characters |
//! | `plot_rows` | the points as rows |
//! | `series_curves` | the series of a run as curves over time |
//! | `series_picture` | its panels, one below the other |
//! | `series_text` | its panels as characters, its intervals as rows of CSV |
//! | `plot_page` | picture and rows as one file for a browser |

mod heat_picture;
mod line_picture;
mod plot_page;
mod plot_rows;
mod plotted_axes;
mod series_curves;
mod series_picture;
mod series_text;
mod text_plot;

pub use heat_picture::heat_picture;
pub use line_picture::line_picture;
pub use plot_page::plot_page;
pub use plot_rows::plot_csv;
pub use plotted_axes::{LogAxes, PlotWidth};
pub use series_curves::series_notes;
pub use series_picture::series_picture;
pub use series_text::{series_csv, series_page, series_text};
pub use text_plot::{TextPlotForm, text_plot};

#[cfg(test)]
mod tests;
