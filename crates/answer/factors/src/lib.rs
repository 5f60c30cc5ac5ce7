//! Designed experiments: chooses which combinations of levels are run, and computes the effect of each factor on the response (the
//! measured figure).
//!
//! It works on numbers of levels, not on specifications, and makes no run: it gives designs, takes responses, and gives effects with
//! intervals. Sources: Box, Hunter and Hunter (designs), Jain 1991 chapters 16 to 22 (analysis), Welch and Satterthwaite (unequal
//! spread), Lenth 1989 (no replicates).
//!
//! | module | one idea |
//! | --- | --- |
//! | `design` | the combinations that are run: full, fractions, screening, one factor at a time |
//! | `generators` | which columns the fractions and the screening designs are made of |
//! | `terms` | effects and interactions as columns of a matrix, and which of them a design cannot separate |
//! | `fit` | least squares, and the interval of any contrast |
//! | `alone` | the effect of each factor by itself, and its rank by that |
//! | `answer` | effects, shares of variation, ranks with ties, checks of residuals |
//! | `purchase` | costs and gains of sets of improvements |

#![expect(clippy::cast_precision_loss, reason = "counts of runs and levels")]

mod alone;
pub mod answer;
pub mod design;
pub mod fit;
mod generators;
pub mod purchase;
pub mod terms;

pub use alone::EffectAlone;
pub use answer::{Effect, EffectScale, FactorAnswer, analyse};
pub use design::{Design, DesignKind, Wish};
pub use fit::{Estimate, FactorObservation};
pub use terms::Term;
